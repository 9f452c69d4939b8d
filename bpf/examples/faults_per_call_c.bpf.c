/*
 * What each call of a function counted: a probe at its begin and one at its end read the registers of the
 * task's published context. crates/perfmon/examples/kernel_api.rs loads and attaches it. The same in Rust is
 * faults_per_call.rs.
 */
#define PFM_CONTEXTS
#include "perfmon.bpf.h"

/* What is sent for each call: what user space gave with the probe, and how much the first register grew. */
struct call {
	u64 function, count;
};

/* Of all calls; error is the last result that was no success. */
struct totals {
	u64 calls, count;
	s64 error;
};

/* The first register when the task's call began. */
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__type(key, int);
	__type(value, u64);
	__uint(max_entries, 0);
	__uint(map_flags, BPF_F_NO_PREALLOC);
} BEGUN SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, u32);
	__type(value, struct totals);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
} TOTALS SEC(".maps");

/* The current task's first register; 0 if it has no context, or it can't be read now. */
static __always_inline int first_register(struct totals *totals, u64 *count)
{
	struct bpf_perf_event_value value = {};
	long context = pfm_context_of_task();
	long result = pfm_read_pmds(context, 0, &value, 1);

	*count = value.counter;
	if (result != 1 && context >= 0)
		totals->error = result;
	return result == 1;
}

/* At the function's first instruction. */
SEC("uprobe")
int call_begins(void *ctx)
{
	u32 zero = 0;
	u64 count, *begun;
	struct totals *totals = bpf_map_lookup_elem(&TOTALS, &zero);

	if (!totals || !first_register(totals, &count))
		return 1;
	begun = bpf_task_storage_get(&BEGUN, bpf_get_current_task_btf(), 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (begun)
		*begun = count;
	return 1;
}

/* Where it returns to. */
SEC("uretprobe")
int call_ends(void *ctx)
{
	u32 zero = 0;
	u64 count, *begun = bpf_task_storage_get(&BEGUN, bpf_get_current_task_btf(), 0, 0);
	struct totals *totals = bpf_map_lookup_elem(&TOTALS, &zero);

	if (!begun || !totals || !first_register(totals, &count))
		return 1;
	struct call call = { bpf_get_attach_cookie(ctx), count - *begun };
	__sync_fetch_and_add(&totals->calls, 1);
	__sync_fetch_and_add(&totals->count, call.count);
	pfm_emit(&call, sizeof(call));
	return 1;
}

/* A call-back sends the context's index and the first register. */
static __always_inline void on_overflow(const struct pfm_sample *sample)
{
	struct bpf_perf_event_value value = {};

	if (pfm_read_pmds(sample->context, 0, &value, 1) == 1) {
		struct call call = { sample->context, value.counter };
		pfm_emit(&call, sizeof(call));
	}
}
PFM_CALLBACK(sampled, on_overflow)

char LICENSE[] SEC("license") = "Dual MIT/GPL";
