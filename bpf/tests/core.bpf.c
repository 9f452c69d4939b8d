/* Relocated against the running kernel's types: the structs below have wrong offsets on purpose. */
#include "perfmon.bpf.h"

struct task_struct {
	int pid;
	int tgid;
	struct task_struct *real_parent;
	char comm[16];
} __kernel_type;

/* The same struct of the kernel, in a version that never existed. */
struct task_struct___never {
	int perfmon_no_such_field;
} __kernel_type;

struct answers {
	u64 runs, pid, tgid, parent_tgid, has_pid, has_nothing, pid_offset;
	char comm[16];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, u32);
	__type(value, struct answers);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
} ANSWERS SEC(".maps");

/* A function of its own, so that a call is relocated as well. */
static __noinline int parent_of(struct task_struct *task)
{
	struct task_struct *parent = 0;
	int tgid = -1;

	core_read_into(&parent, &task->real_parent);
	core_read_into(&tgid, &parent->tgid);
	return tgid;
}

SEC("perf_event")
int core_probe(void *ctx)
{
	u32 zero = 0;
	struct answers *a = bpf_map_lookup_elem(&ANSWERS, &zero);
	if (!a)
		return 0;
	struct task_struct *task = (void *)bpf_get_current_task();
	struct task_struct___never *never = (void *)task;

	a->pid = core_read(task, pid);
	a->tgid = core_read(task, tgid);
	a->parent_tgid = parent_of(task);
	core_read_into(&a->comm, &task->comm);
	a->has_pid = bpf_core_field_exists(task->pid);
	a->has_nothing = bpf_core_field_exists(never->perfmon_no_such_field);
	a->pid_offset = bpf_core_field_offset(task->pid);
	a->runs++;
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
