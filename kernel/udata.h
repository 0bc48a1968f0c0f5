/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The driver's part of a process's command. */
#ifndef HERALD_UDATA_H
#define HERALD_UDATA_H

#include <linux/uaccess.h>
#include <rdma/ib_verbs.h>

/**
 * herald_udata_zero() - Check that a request says nothing in what we do not know
 * @udata: the driver's part of the command; NULL for a kernel consumer
 * @known: length of the part of the request that is known
 *
 * Other than ib_is_udata_cleared() it needs no memory, the lack of which would
 * look like a request for something.
 *
 * Return: 0, -EOPNOTSUPP if the rest is not all zeros, or -EFAULT.
 */
static inline int herald_udata_zero(const struct ib_udata *udata, size_t known)
{
	int ret;

	if (!udata || udata->inlen <= known)
		return 0;
	ret = check_zeroed_user(udata->inbuf + known, udata->inlen - known);
	if (ret < 0)
		return ret;
	return ret ? 0 : -EOPNOTSUPP;
}

#endif /* HERALD_UDATA_H */
