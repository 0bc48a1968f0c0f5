// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Tables of the contiguous pieces of a memory region. */
#include <linux/ioport.h>
#include <linux/mm.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <rdma/ib_umem.h>
#include <rdma/ib_verbs.h>

#include "mem.h"

struct herald_mem *herald_mem_alloc(u32 max_ranges)
{
	struct herald_mem *mem;

	mem = kvzalloc(struct_size(mem, ranges, max_ranges), GFP_KERNEL_ACCOUNT);
	if (mem)
		mem->max_ranges = max_ranges;
	return mem;
}

void herald_mem_free(struct herald_mem *mem)
{
	/* A reader that found the key may still try to get a reference. */
	if (mem)
		kvfree_rcu(mem, rcu);
}

struct herald_mem *herald_mem_from_umem(struct ib_umem *umem)
{
	struct sg_table *sgt = &umem->sgt_append.sgt;
	u64 left = umem->length, skip = ib_umem_offset(umem);
	struct herald_mem *mem;
	struct scatterlist *sg;
	unsigned int i;

	mem = herald_mem_alloc(sgt->orig_nents);
	if (!mem)
		return ERR_PTR(-ENOMEM);
	for_each_sgtable_sg(sgt, sg, i) {
		u64 len = min_t(u64, sg->length - skip, left);

		if (!len)
			break;
		/* The table has room for every entry. */
		herald_mem_add(mem, page_address(sg_page(sg)) + skip, len);
		left -= len;
		skip = 0;
	}
	return mem;
}

struct herald_mem *herald_mem_dup(const struct herald_mem *mem)
{
	struct herald_mem *copy = herald_mem_alloc(mem->nranges);

	if (!copy)
		return NULL;
	copy->nranges = mem->nranges;
	copy->length = mem->length;
	memcpy(copy->ranges, mem->ranges, flex_array_size(mem, ranges, mem->nranges));
	return copy;
}

bool herald_umem_is_persistent(struct ib_umem *umem)
{
	struct scatterlist *sg;
	unsigned int i;

	for_each_sgtable_sg(&umem->sgt_append.sgt, sg, i) {
		if (region_intersects(PFN_PHYS(page_to_pfn(sg_page(sg))), sg->length,
				      IORESOURCE_MEM, IORES_DESC_PERSISTENT_MEMORY) !=
		    REGION_INTERSECTS)
			return false;
	}
	return true;
}
