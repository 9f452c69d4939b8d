/* Sections that libbpf knows and the parser of object files does not: the loader must get past them. */
#include "perfmon.bpf.h"

u64 runs; /* .bss */
u64 start = 40; /* .data */

SEC("syscall")
int add_up(void *ctx)
{
	runs++;
	return start + runs;
}

SEC("uprobe.multi")
int many(void *ctx)
{
	runs++;
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
