// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The table of memory keys. */
#include <linux/random.h>

#include "device.h"
#include "mr.h"

void herald_keys_init(struct herald_dev *dev)
{
	xa_init_flags(&dev->keys, XA_FLAGS_ALLOC);
	/* No peer should be able to foretell a key. */
	dev->next_key = get_random_u32_below(HERALD_KEY_MAX_INDEX) + 1;
	atomic_set(&dev->key_seq, get_random_u8());
}

int herald_key_alloc(struct herald_dev *dev, struct herald_key *key, u32 *value)
{
	int ret;

	/*
	 * Indices are reused as late as possible, and with another variant: a
	 * stale key finds nothing, or something that it does not fit.
	 */
	ret = xa_alloc_cyclic(&dev->keys, &key->index, key, XA_LIMIT(1, HERALD_KEY_MAX_INDEX),
			      &dev->next_key, GFP_KERNEL);
	if (ret < 0)
		return -ENOMEM;
	herald_hint_set(&dev->key_hints, key->index, key);
	*value = herald_key_make(key->index, atomic_inc_return(&dev->key_seq));
	return 0;
}

struct herald_key *herald_key_find(struct herald_dev *dev, u32 index)
{
	struct herald_key *key = herald_hint(&dev->key_hints, index);

	return likely(key && key->index == index) ? key : xa_load(&dev->keys, index);
}

void herald_key_free(struct herald_dev *dev, struct herald_key *key)
{
	herald_hint_clear(&dev->key_hints, key->index, key);
	xa_erase(&dev->keys, key->index);
}
