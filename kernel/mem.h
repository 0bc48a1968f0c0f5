/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What a region's key stands for at one time: an immutable table of the
 * contiguous pieces of kernel memory that make it up, and who may use it.
 * Every change of a region publishes another table, so that a copy under way
 * sees the old one or the new one and never a mixture.
 */
#ifndef HERALD_MEM_H
#define HERALD_MEM_H

#include <linux/rcupdate.h>
#include <linux/refcount.h>
#include <linux/types.h>
#include <linux/wait_bit.h>

/* Physical memory is reached through the kernel's linear mapping, all of it. */
#if !defined(CONFIG_64BIT) || defined(CONFIG_HIGHMEM)
#error "herald needs a 64-bit kernel without high memory"
#endif

struct ib_pd;
struct ib_umem;
struct herald_mr;

/* Begins @start bytes into the region; ends where the next one begins. */
struct herald_range {
	u64 start;
	void *va;
};

/**
 * struct herald_mem - a region's memory and rights
 * @refs: one for being published, one per copy under way; 0: nobody looks at
 *	it, and nobody can begin to, until it is published again
 * @key: lkey and rkey
 * @access: enum ib_access_flags
 * @identity: addresses are the kernel's own; @ranges is empty
 * @pd: compared, never followed
 * @iova: address of the first byte
 * @length: bytes
 * @mr: the region; alive as long as @refs is not 0
 * @ranges: sorted, adjoining, the first begins at 0
 */
struct herald_mem {
	refcount_t refs;
	u32 key;
	int access;
	bool identity;
	struct ib_pd *pd;
	u64 iova;
	u64 length;
	struct herald_mr *mr;
	u32 nranges;
	u32 max_ranges;
	struct rcu_head rcu;
	struct herald_range ranges[] __counted_by(max_ranges);
};

/* Is [addr, addr + len) inside [base, base + length)?  No sum can overflow. */
static inline bool herald_range_inside(u64 addr, u64 len, u64 base, u64 length)
{
	return addr >= base && len <= length && addr - base <= length - len;
}

/**
 * herald_mem_find - the range that holds a byte
 * @mem: the table, not empty
 * @off: offset of the byte, below @mem->length
 *
 * Return: index into @mem->ranges.
 * Context: any.
 */
static inline u32 herald_mem_find(const struct herald_mem *mem, u64 off)
{
	u32 lo = 0, hi = mem->nranges;

	while (hi - lo > 1) {
		u32 mid = lo + (hi - lo) / 2;

		if (mem->ranges[mid].start <= off)
			lo = mid;
		else
			hi = mid;
	}
	return lo;
}

/* Offset at which range @i ends.  Context: any. */
static inline u64 herald_mem_range_end(const struct herald_mem *mem, u32 i)
{
	return i + 1 < mem->nranges ? mem->ranges[i + 1].start : mem->length;
}

/**
 * herald_mem_run - where a byte is, and how many follow it without a gap
 * @mem: the memory
 * @off: offset of the byte, below @mem->length
 * @run: set to the bytes from there to the end of its range
 *
 * Return: the kernel's address of the byte.
 * Context: any.
 */
static inline void *herald_mem_run(const struct herald_mem *mem, u64 off, u64 *run)
{
	u32 i;

	if (mem->identity) {
		*run = mem->length - off;
		return (void *)(uintptr_t)off;
	}
	i = herald_mem_find(mem, off);
	*run = herald_mem_range_end(mem, i) - off;
	return mem->ranges[i].va + (off - mem->ranges[i].start);
}

/**
 * herald_mem_add - append memory to a table that is not published
 * @mem: the table
 * @va: where it is
 * @len: bytes, not 0
 *
 * Memory that follows the last range's is joined with it.
 * Return: 0, or -ENOSPC if the table is full.
 * Context: any.
 */
static inline int herald_mem_add(struct herald_mem *mem, void *va, u64 len)
{
	struct herald_range *last = mem->nranges ? &mem->ranges[mem->nranges - 1] : NULL;

	if (!last || last->va + (mem->length - last->start) != va) {
		if (mem->nranges == mem->max_ranges)
			return -ENOSPC;
		mem->ranges[mem->nranges++] = (struct herald_range){
			.start = mem->length, .va = va,
		};
	}
	mem->length += len;
	return 0;
}

/* Empty a table that nobody looks at. */
static inline void herald_mem_clear(struct herald_mem *mem)
{
	mem->nranges = 0;
	mem->length = 0;
}

/* Let go of a reference.  Context: any. */
static inline void herald_mem_put(struct herald_mem *mem)
{
	if (refcount_dec_and_test(&mem->refs)) {
		/* wake_up_var() looks for waiters after the count is seen to be 0. */
		smp_mb__after_atomic();
		/* The address is only hashed: @mem may be gone already. */
		wake_up_var(&mem->refs);
	}
}

/* Has the last copy ended?  Only meaningful once it is not published. */
static inline bool herald_mem_idle(const struct herald_mem *mem)
{
	if (refcount_read(&mem->refs))
		return false;
	smp_acquire__after_ctrl_dep();
	return true;
}

/* Wait for the copies under way; it must not be published.  Context: may sleep. */
static inline void herald_mem_wait_idle(struct herald_mem *mem)
{
	wait_var_event(&mem->refs, herald_mem_idle(mem));
}

/* A table with room for @max_ranges, not published.  NULL: no memory.  May sleep. */
struct herald_mem *herald_mem_alloc(u32 max_ranges);

/* Free an idle table, after a grace period.  NULL is fine.  Context: process. */
void herald_mem_free(struct herald_mem *mem);

/* The table of pinned memory; or an ERR_PTR, -ENOMEM.  May sleep. */
struct herald_mem *herald_mem_from_umem(struct ib_umem *umem);

/* A copy of an unpublished or held table; NULL: no memory.  May sleep. */
struct herald_mem *herald_mem_dup(const struct herald_mem *mem);

/* Is every byte of it in persistent memory?  Context: process. */
bool herald_umem_is_persistent(struct ib_umem *umem);

#endif /* HERALD_MEM_H */
