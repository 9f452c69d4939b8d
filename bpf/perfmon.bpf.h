/*
 * What eBPF programs in C need of the kernel: helpers, maps, settings, the context, reads that are
 * relocated to the running kernel (CO-RE). It needs no other header.
 *
 * Names are libbpf's where libbpf has one, so a program can move between the two. Unless it says otherwise a
 * helper returns 0, or a negative errno; flags are 0 where none are named.
 */
#ifndef PERFMON_BPF_H
#define PERFMON_BPF_H

typedef signed char s8;
typedef unsigned char u8;
typedef short s16;
typedef unsigned short u16;
typedef int s32;
typedef unsigned int u32;
typedef long long s64;
typedef unsigned long long u64;
_Static_assert(sizeof(long) == 8, "compile with -target bpf");

/* Puts a program, a map or the licence where the loader looks for it. */
#define SEC(name) __attribute__((section(name), used))
#undef __always_inline
#define __always_inline inline __attribute__((always_inline))
/* A function that stays a call. It takes five arguments at most. */
#undef __noinline
#define __noinline __attribute__((noinline))

/*
 * A setting: user space may set it before the program is loaded, and the verifier drops the branches that
 * can't be taken.
 *
 *	SETTING(u64, PERIOD) = 1000;
 */
#define SETTING(type, name) const volatile type name

/*
 * Maps.
 *
 *	struct {
 *		__uint(type, BPF_MAP_TYPE_HASH);
 *		__type(key, u32);
 *		__type(value, struct count);
 *		__uint(max_entries, 1024);
 *	} COUNTS SEC(".maps");
 *
 * Maps of descriptors (PROG_ARRAY, PERF_EVENT_ARRAY) have __uint(key_size, 4) and __uint(value_size, 4)
 * instead of types; a RINGBUF has neither, and its max_entries are bytes: a power of two, and whole pages.
 */
#define __uint(name, number) int (*name)[number]
#define __type(name, type) typeof(type) *name

enum {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PROG_ARRAY = 3,
	BPF_MAP_TYPE_PERF_EVENT_ARRAY = 4,
	BPF_MAP_TYPE_PERCPU_HASH = 5,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
};

enum {
	/* map_flags: values are made when needed (TASK_STORAGE must have it, with max_entries 0) */
	BPF_F_NO_PREALLOC = 1 << 0,
	/* map_flags: user space may map an ARRAY into its memory */
	BPF_F_MMAPABLE = 1 << 10,
};

enum {
	/* bpf_map_update_elem: set it in any case, only if absent (-17 EEXIST), only if present (-2 ENOENT) */
	BPF_ANY = 0,
	BPF_NOEXIST = 1,
	BPF_EXIST = 2,
	/* bpf_task_storage_get: make a value if there is none */
	BPF_LOCAL_STORAGE_GET_F_CREATE = 1,
	/* bpf_ringbuf_*: don't wake the reader up; wake it up whatever it has read */
	BPF_RB_NO_WAKEUP = 1,
	BPF_RB_FORCE_WAKEUP = 2,
};

/* An event's count, and the nanoseconds for which it was enabled and for which it counted. */
struct bpf_perf_event_value {
	u64 counter;
	u64 enabled;
	u64 running;
};

struct task_struct;
struct seq_file;

/* The value of a key, or null: check it before use. In maps of values per CPU it is this CPU's. */
static void *(*const bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
/* -7 (E2BIG): the map is full. */
static long (*const bpf_map_update_elem)(void *map, const void *key, const void *value, u64 flags) = (void *)2;
/* -2 (ENOENT): there is none. */
static long (*const bpf_map_delete_elem)(void *map, const void *key) = (void *)3;
/* What a map has for a task, or null; with BPF_LOCAL_STORAGE_GET_F_CREATE a copy of value, or zeros. */
static void *(*const bpf_task_storage_get)(void *map, struct task_struct *task, void *value,
					   u64 flags) = (void *)156;
static long (*const bpf_task_storage_delete)(void *map, struct task_struct *task) = (void *)157;

/* Copies into a ring buffer; -11 (EAGAIN): it has no room. */
static long (*const bpf_ringbuf_output)(void *ring, void *data, u64 size, u64 flags) = (void *)130;
/* Room for a constant size of bytes, or null. Each way out of the program submits or discards it. */
static void *(*const bpf_ringbuf_reserve)(void *ring, u64 size, u64 flags) = (void *)131;
static void (*const bpf_ringbuf_submit)(void *data, u64 flags) = (void *)132;
static void (*const bpf_ringbuf_discard)(void *data, u64 flags) = (void *)133;

/* Nanoseconds since boot without suspended time. */
static u64 (*const bpf_ktime_get_ns)(void) = (void *)5;
static u32 (*const bpf_get_smp_processor_id)(void) = (void *)8;
/* The process (tgid) in the upper 32 bits, the thread in the lower ones, of the initial PID namespace. */
static u64 (*const bpf_get_current_pid_tgid)(void) = (void *)14;
/* The thread's name; 16 bytes hold any. */
static long (*const bpf_get_current_comm)(void *buffer, u32 size) = (void *)16;
/* The thread's struct task_struct as a number, for reads, */
static u64 (*const bpf_get_current_task)(void) = (void *)35;
/* and as a pointer that other helpers take. */
static struct task_struct *(*const bpf_get_current_task_btf)(void) = (void *)158;
/* A pointer to the registers with which a task entered the kernel. */
static long (*const bpf_task_pt_regs)(struct task_struct *task) = (void *)175;

/* The number that user space gave with this attachment of the program. */
static u64 (*const bpf_get_attach_cookie)(void *ctx) = (void *)174;
/* The address of the function that a probe was called for. */
static u64 (*const bpf_get_func_ip)(void *ctx) = (void *)173;

/* Reads an event of a PERF_EVENT_ARRAY; flags are its index. -2 (ENOENT): none; -22 (EINVAL): not of this task and CPU. */
static long (*const bpf_perf_event_read_value)(void *map, u64 flags, struct bpf_perf_event_value *value,
					       u32 size) = (void *)55;
/* Reads the event that a perf_event program is called for. */
static long (*const bpf_perf_prog_read_value)(void *ctx, struct bpf_perf_event_value *value, u32 size) = (void *)56;

/* -14 (EFAULT): the memory is not there, and the target is zeros. */
static long (*const bpf_probe_read_user)(void *to, u32 size, const void *from) = (void *)112;
static long (*const bpf_probe_read_kernel)(void *to, u32 size, const void *from) = (void *)113;

/* Goes on with another program and does not come back, unless there is none at the index. */
static long (*const bpf_tail_call)(void *ctx, void *programs, u32 index) = (void *)12;
/* Calls long body(u32 round, void *data) until it returns 1; gives how often. Since Linux 5.17. */
static long (*const bpf_loop)(u32 rounds, void *body, void *data, u64 flags) = (void *)181;
/* Writes out of an iterator program. */
static long (*const bpf_seq_write)(struct seq_file *seq, const void *data, u32 size) = (void *)127;

/*
 * The 8-byte word or 4-byte half word number n, a constant, of a program's context: one load with a constant
 * offset. The compiler may merge two plain ones into one with a computed offset, which the verifier refuses.
 */
#define context_word(ctx, n)                                                                               \
	({                                                                                                 \
		u64 word_;                                                                                 \
		asm volatile("%0 = *(u64 *)(%1 + %2)" : "=r"(word_) : "r"(ctx), "i"(8 * (n)));             \
		word_;                                                                                     \
	})
#define context_half(ctx, n)                                                                               \
	({                                                                                                 \
		u64 half_;                                                                                 \
		asm volatile("%0 = *(u32 *)(%1 + %2)" : "=r"(half_) : "r"(ctx), "i"(4 * (n)));             \
		(u32)half_;                                                                                \
	})

/*
 * Types of the kernel. Declare a struct with the kernel's name, the fields that are used, and this behind it;
 * the loader puts in the offsets of the running kernel. What follows ___ in a struct's name does not count.
 */
#define __kernel_type __attribute__((preserve_access_index))

/* Copies a field of the kernel: core_read_into(&own, &task->field). It gives 0, or -14 (EFAULT). */
#define core_read_into(to, from) \
	bpf_probe_read_kernel((to), sizeof(*(to)), __builtin_preserve_access_index(from))
/* The value of a field of the kernel, zero if it can't be read: core_read(task, pid). */
#define core_read(object, field)                                                                           \
	({                                                                                                 \
		typeof((object)->field) field_ = {};                                                       \
		core_read_into(&field_, &(object)->field);                                                 \
		field_;                                                                                    \
	})

/* 1 if the running kernel has the field; its offset and size there, in bytes. */
#define bpf_core_field_exists(field) __builtin_preserve_field_info(field, 2)
#define bpf_core_field_offset(field) __builtin_preserve_field_info(field, 0)
#define bpf_core_field_size(field) __builtin_preserve_field_info(field, 1)

#ifdef PFM_CONTEXTS
/*
 * Contexts that user space has published, for programs anywhere: found by task or CPU, read, started, stopped.
 * The loader puts the publisher's maps in the place of those below. What the functions promise is in
 * docs/kernel-api.md; the same in Rust is perfmon_bpf/pfm.rs.
 *
 *	#define PFM_CONTEXTS
 *	#include "perfmon.bpf.h"
 */
#define PFM_ENOENT (-2)  /* no such context, register or event: it was freed, or its owner has ended */
#define PFM_EAGAIN (-11) /* the register's set is not the active one */
#define PFM_EBUSY (-16)  /* a program on this CPU is just changing the context */
#define PFM_EINVAL (-22) /* the context belongs to another task, or another CPU */

enum {
	PFM_PMDS_MAX = 64,
	/* Context.state: it can be read */
	PFM_LOADED = 1,
	/* Context.flags, pfm_info.flags: it counts; it belongs to a CPU */
	PFM_STARTED = 1,
	PFM_SYSTEM_WIDE = 2,
	/* pfm_sample.kind */
	PFM_OVERFLOW = 0,
	PFM_HIT_OF_TRACEPOINT = 1,
	PFM_HIT_OF_PROBE = 2,
};

/* As in perfmon_bpf/layout.rs, which says what the fields are. */
struct Value {
	u64 value, enabled_ns, running_ns;
};
struct Pmd {
	u32 set, padding;
	struct Value base, frozen;
};
struct Context {
	u32 state, flags, target, nr_pmds, first_event, active_set;
	u64 busy, generation, samples, unplugged, hits_left, hit_period;
	struct Pmd pmds[PFM_PMDS_MAX];
};

/* What pfm_context_info gives. */
struct pfm_info {
	u32 flags, target, nr_pmds, active_set;
	u64 generation, samples;
};

/* What a call-back is called for. */
struct pfm_sample {
	u32 context, kind;
	/* Process and thread: upper and lower half. */
	u64 pid_tgid, time_ns;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, u32);
	__type(value, struct Context);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
} pfm_contexts SEC(".maps");
struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(key_size, 4);
	__uint(value_size, 4);
	__uint(max_entries, 1);
} pfm_events SEC(".maps");
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__type(key, int);
	__type(value, u64);
	__uint(max_entries, 0);
	__uint(map_flags, BPF_F_NO_PREALLOC);
} pfm_tasks SEC(".maps");
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, u32);
	__type(value, u64);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
} pfm_cpus SEC(".maps");
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} pfm_ring SEC(".maps");

/* The index of the current task's context, or PFM_ENOENT. */
static __always_inline long pfm_context_of_task(void)
{
	u64 *number = bpf_task_storage_get(&pfm_tasks, bpf_get_current_task_btf(), 0, 0);

	return number && *number ? (long)*number - 1 : PFM_ENOENT;
}

/* The index of this CPU's context, or PFM_ENOENT. */
static __always_inline long pfm_context_of_cpu(void)
{
	u32 cpu = bpf_get_smp_processor_id();
	u64 *number = bpf_map_lookup_elem(&pfm_cpus, &cpu);

	return number && *number ? (long)*number - 1 : PFM_ENOENT;
}

static __always_inline struct Context *pfm_context_(long index)
{
	u32 key = index;
	struct Context *context = bpf_map_lookup_elem(&pfm_contexts, &key);

	return context && *(volatile u32 *)&context->state == PFM_LOADED ? context : 0;
}

static __always_inline long pfm_raw_(struct Context *context, u32 number, struct bpf_perf_event_value *now)
{
	return bpf_perf_event_read_value(&pfm_events, context->first_event + number, now, sizeof(*now));
}

/* Reads up to `wanted` registers, a constant, from `first` on: gives how many. */
static __always_inline long pfm_read_pmds(long index, u32 first, struct bpf_perf_event_value *to, u32 wanted)
{
	struct Context *context = pfm_context_(index);
	u32 done;

	if (!context)
		return PFM_ENOENT;
	if (*(volatile u64 *)&context->busy)
		return PFM_EBUSY;
	u64 counts = context->flags & PFM_STARTED;
	for (done = 0; done < wanted && done < PFM_PMDS_MAX; done++, to++) {
		u32 number = first + done;

		if (number >= context->nr_pmds || number >= PFM_PMDS_MAX)
			break;
		struct Pmd *pmd = &context->pmds[number];
		if (pmd->set != context->active_set)
			return done ? (long)done : PFM_EAGAIN;
		/* Also when it is stopped: it says whether this is the place, and whether its owner lives. */
		long result = pfm_raw_(context, number, to);
		if (result)
			return result;
		to->counter = (to->counter - pmd->base.value) * counts + pmd->frozen.value;
		to->enabled = (to->enabled - pmd->base.enabled_ns) * counts + pmd->frozen.enabled_ns;
		to->running = (to->running - pmd->base.running_ns) * counts + pmd->frozen.running_ns;
	}
	return done ? (long)done : PFM_ENOENT;
}

static __always_inline long pfm_switch_pmds_(struct Context *context, int start)
{
	for (u32 number = 0; number < PFM_PMDS_MAX && number < context->nr_pmds; number++) {
		struct Pmd *pmd = &context->pmds[number];
		struct bpf_perf_event_value now = {};
		long result = pfm_raw_(context, number, &now);

		/* Those before it have the same value as ever. */
		if (result)
			return result;
		if (!start) {
			pmd->frozen.value += now.counter - pmd->base.value;
			pmd->frozen.enabled_ns += now.enabled - pmd->base.enabled_ns;
			pmd->frozen.running_ns += now.running - pmd->base.running_ns;
		}
		pmd->base = (struct Value){ now.counter, now.enabled, now.running };
	}
	context->flags ^= PFM_STARTED;
	context->generation++;
	return 0;
}

static __always_inline long pfm_switch_(long index, int start)
{
	struct Context *context = pfm_context_(index);
	struct bpf_perf_event_value now = {};
	long result;

	if (!context)
		return PFM_ENOENT;
	/* Who is in the wrong place must not keep others off. */
	result = pfm_raw_(context, 0, &now);
	if (result)
		return result;
	if (__sync_lock_test_and_set(&context->busy, 1))
		return PFM_EBUSY;
	if ((int)(context->flags & PFM_STARTED) != start)
		result = pfm_switch_pmds_(context, start);
	__sync_lock_test_and_set(&context->busy, 0);
	return result;
}

/* Let a context count, and freeze its values: 0, also if it was so already. */
static __always_inline long pfm_start(long index)
{
	return pfm_switch_(index, 1);
}
static __always_inline long pfm_stop(long index)
{
	return pfm_switch_(index, 0);
}

/* What a context is and how it stands. */
static __always_inline long pfm_context_info(long index, struct pfm_info *to)
{
	struct Context *context = pfm_context_(index);
	struct bpf_perf_event_value now = {};

	/* The events go with their owner, whoever still has the maps. */
	if (!context || pfm_raw_(context, 0, &now) == PFM_ENOENT)
		return PFM_ENOENT;
	*to = (struct pfm_info){
		context->flags, context->target, context->nr_pmds, context->active_set,
		context->generation, context->samples,
	};
	return 0;
}

/* Sends a record to the publisher; -11 (EAGAIN): there is no room. */
static __always_inline long pfm_emit(void *record, u64 size)
{
	return bpf_ringbuf_output(&pfm_ring, record, size, 0);
}

/*
 * Makes a function of a const struct pfm_sample * a call-back: programs NAME, NAME_tracepoint and NAME_probe.
 *
 *	static __always_inline void body(const struct pfm_sample *sample) { ... }
 *	PFM_CALLBACK(on_sample, body)
 */
#define PFM_CALLBACK(name, body)                                     \
	PFM_CALLBACK_("perf_event", name, PFM_OVERFLOW, body)        \
	PFM_CALLBACK_("tp", name##_tracepoint, PFM_HIT_OF_TRACEPOINT, body) \
	PFM_CALLBACK_("kprobe", name##_probe, PFM_HIT_OF_PROBE, body)
/* The cookie is still that of the stub's attachment. A tracepoint's program returns 1, or its events don't count. */
#define PFM_CALLBACK_(section, name, kind_, body)                      \
	SEC(section) int name(void *ctx)                               \
	{                                                              \
		struct pfm_sample sample = {                           \
			.context = bpf_get_attach_cookie(ctx),         \
			.kind = kind_,                                 \
			.pid_tgid = bpf_get_current_pid_tgid(),        \
			.time_ns = bpf_ktime_get_ns(),                 \
		};                                                     \
		body(&sample);                                         \
		return 1;                                              \
	}
#endif

#endif
