// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * needed until 6.12: crc32_le() works by tables there, and what the processor has for
 * it (PCLMULQDQ) is behind the crypto API only.  Which of the two is faster is measured
 * when the module is loaded, after a check that they agree.
 */
#ifndef HAVE_CRC32_OPTIMIZATIONS

#include <crypto/hash.h>
#include <linux/crc32.h>
#include <linux/jump_label.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/sysfs.h>

/* Fewer bytes do not earn what a call of the crypto API costs. */
#define CRYPTO_MIN	256
#define SAMPLE_LEN	4096
#define SAMPLE_ROUNDS	32

enum crc_mode {
	CRC_AUTO,
	CRC_LIBRARY,
	CRC_CRYPTO,
};

typedef u32 crc_fn(u32 crc, const void *p, size_t len);

static const char * const crc_modes[] = {
	[CRC_AUTO] = "auto",
	[CRC_LIBRARY] = "library",
	[CRC_CRYPTO] = "crypto",
};

static enum crc_mode crc_mode = CRC_AUTO;
static struct crypto_shash *crc_shash;	/* NULL: none, or none to be trusted */
static DEFINE_STATIC_KEY_FALSE(crc_by_crypto);

static int crc_mode_set(const char *value, const struct kernel_param *param)
{
	int mode = sysfs_match_string(crc_modes, value);

	if (mode < 0)
		return mode;
	crc_mode = mode;
	return 0;
}

static int crc_mode_get(char *buffer, const struct kernel_param *param)
{
	return sysfs_emit(buffer, "%s\n",
			  crc_modes[static_key_enabled(&crc_by_crypto) ? CRC_CRYPTO : CRC_LIBRARY]);
}

static const struct kernel_param_ops crc_mode_ops = {
	.set = crc_mode_set,
	.get = crc_mode_get,
};

module_param_cb(crc, &crc_mode_ops, NULL, 0444);
__MODULE_PARM_TYPE(crc, "auto|library|crypto");
MODULE_PARM_DESC(crc, "what computes packets' CRCs: auto (the faster one), library (crc32_le), crypto (crypto API); reads as the one in use");

static u32 crc_library(u32 crc, const void *p, size_t len)
{
	return crc32_le(crc, p, len);
}

/* The state of a "crc32" is the CRC so far; crc_agrees() would see one that is not. */
static u32 crc_crypto(u32 crc, const void *p, size_t len)
{
	SHASH_DESC_ON_STACK(desc, crc_shash);

	desc->tfm = crc_shash;
	if (crypto_shash_import(desc, &crc) || crypto_shash_update(desc, p, len) ||
	    crypto_shash_export(desc, &crc))
		return crc32_le(crc, p, len);
	return crc;
}

u32 herald_crc32_le(u32 crc, const void *p, size_t len)
{
	if (static_branch_unlikely(&crc_by_crypto) && len >= CRYPTO_MIN)
		return crc_crypto(crc, p, len);
	return crc32_le(crc, p, len);
}

/* Lengths around what is done at once (16 and 64 bytes), at every alignment. */
static bool crc_agrees(const u8 *sample)
{
	u32 at, len, seed = ~0u;

	for (at = 0; at < 16; at++)
		for (len = CRYPTO_MIN; len < CRYPTO_MIN + 80; len++) {
			u32 crc = crc_crypto(seed, sample + at, len);

			if (crc != crc32_le(seed, sample + at, len))
				return false;
			seed = crc;
		}
	return crc_crypto(seed, sample, SAMPLE_LEN) == crc32_le(seed, sample, SAMPLE_LEN);
}

static struct crypto_shash *crc_shash_get(void)
{
	struct crypto_shash *shash = crypto_alloc_shash("crc32", 0, 0);

	if (IS_ERR(shash))
		return NULL;
	if (crypto_shash_statesize(shash) == sizeof(u32))
		return shash;
	crypto_free_shash(shash);
	return NULL;
}

/* Return: nanoseconds for the sample, the best of many, as interrupts come between. */
static u64 crc_time(crc_fn *fn, const u8 *sample)
{
	static u32 sink;	/* a result that is wanted: crc32_le() may be left out otherwise */
	u64 best = U64_MAX;
	u32 round;

	for (round = 0; round < SAMPLE_ROUNDS; round++) {
		u64 start = ktime_get_ns();

		WRITE_ONCE(sink, fn(round, sample, SAMPLE_LEN));
		best = min(best, ktime_get_ns() - start);
	}
	return best;
}

static bool crc_crypto_is_faster(const u8 *sample)
{
	u64 library = crc_time(crc_library, sample), crypto = crc_time(crc_crypto, sample);

	pr_debug("herald: %u bytes: crc32_le %llu ns, %s %llu ns\n", SAMPLE_LEN, library,
		 crypto_shash_driver_name(crc_shash), crypto);
	return crypto < library;
}

static bool crc_choose(const u8 *sample)
{
	crc_shash = crc_shash_get();
	if (!crc_shash || !crc_agrees(sample)) {
		if (crc_mode == CRC_CRYPTO)
			pr_warn("herald: crc=crypto: the crypto API has no crc32 that fits; crc32_le() is used\n");
		return false;
	}
	return crc_mode == CRC_CRYPTO || crc_crypto_is_faster(sample);
}

static void crc_shash_put(void)
{
	if (crc_shash)
		crypto_free_shash(crc_shash);
	crc_shash = NULL;
}

int herald_crc_init(void)
{
	u8 *sample;
	u32 i;

	if (crc_mode == CRC_LIBRARY)
		return 0;
	sample = kmalloc(SAMPLE_LEN, GFP_KERNEL);
	if (!sample)
		return -ENOMEM;
	for (i = 0; i < SAMPLE_LEN; i++)
		sample[i] = i * 7 + (i >> 8);
	if (crc_choose(sample))
		static_branch_enable(&crc_by_crypto);
	else
		crc_shash_put();
	kfree(sample);
	return 0;
}

void herald_crc_exit(void)
{
	static_branch_disable(&crc_by_crypto);
	crc_shash_put();
}

#endif /* HAVE_CRC32_OPTIMIZATIONS */
