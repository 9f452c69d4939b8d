/* The commands of reader.rs, by the functions in C. */
#define PFM_CONTEXTS
#include "perfmon.bpf.h"

struct answer {
	u64 runs;
	s64 context, result;
	struct bpf_perf_event_value pmds[4];
	u64 cookie;
};

struct note {
	u32 context, kind;
	s64 result;
	u64 value, thread;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, u32);
	__type(value, struct answer);
	__uint(max_entries, 16);
	__uint(map_flags, BPF_F_MMAPABLE);
} ANSWERS SEC(".maps");

SETTING(u32, COMMANDS) = 0;
SETTING(u64, CALL) = 0;

enum { READ_TASK, READ_CPU, READ_FIRST, READ_SECOND, START, STOP, INFO, EMIT, START_FIRST, READ_ALL, INFO_OF_FIRST };

static __always_inline void note(struct answer *answer, long context, u32 first)
{
	answer->context = context;
	answer->result = pfm_read_pmds(context, first, answer->pmds, 4);
	__sync_fetch_and_add(&answer->runs, 1);
}

static __always_inline void note_info(struct answer *answer, long context)
{
	struct pfm_info info = {};

	answer->context = context;
	answer->result = pfm_context_info(context, &info);
	answer->pmds[0] = (struct bpf_perf_event_value){ info.flags, info.target, info.nr_pmds };
	answer->pmds[1] = (struct bpf_perf_event_value){ info.active_set, info.generation, info.samples };
}

SEC("tp")
int command(void *ctx)
{
	u32 argument = context_half(ctx, 4) - COMMANDS, slot = argument & 15;
	struct answer *answer = bpf_map_lookup_elem(&ANSWERS, &slot);

	if (argument >= 256 || !answer)
		return 1;
	switch (argument >> 4) {
	case READ_TASK:
		note(answer, pfm_context_of_task(), 0);
		break;
	case READ_CPU:
		note(answer, pfm_context_of_cpu(), 0);
		break;
	case READ_FIRST:
		note(answer, 0, 0);
		break;
	case READ_SECOND:
		note(answer, 0, 1);
		break;
	case START:
		answer->result = pfm_start(pfm_context_of_task());
		break;
	case STOP:
		answer->result = pfm_stop(pfm_context_of_task());
		break;
	case START_FIRST:
		answer->result = pfm_start(0);
		break;
	case INFO:
		note_info(answer, pfm_context_of_task());
		break;
	case INFO_OF_FIRST:
		note_info(answer, 0);
		break;
	case EMIT:
		answer->result = pfm_emit(&argument, sizeof(argument));
		break;
	}
	return 1;
}

static __always_inline void body(const struct pfm_sample *sample)
{
	struct bpf_perf_event_value value = {};
	struct note note = { .context = sample->context, .kind = sample->kind };

	note.result = pfm_read_pmds(sample->context, 0, &value, 1);
	note.value = value.counter;
	note.thread = (u32)sample->pid_tgid;
	pfm_emit(&note, sizeof(note));
}
PFM_CALLBACK(on_sample, body)


char LICENSE[] SEC("license") = "Dual MIT/GPL";
