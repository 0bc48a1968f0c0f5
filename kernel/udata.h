/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The driver's part of a process's command. */
#ifndef HERALD_UDATA_H
#define HERALD_UDATA_H

#include <linux/uaccess.h>
#include <rdma/ib_verbs.h>

/**
 * herald_udata_zero - check that the driver's part of a request, which has no meaning yet, is zero
 * @udata: the driver's part of the command; NULL for a kernel consumer
 *
 * Other than ib_is_udata_cleared() it needs no memory, the lack of which would
 * look like a request for something.
 *
 * Return: 0, -EOPNOTSUPP if it is not all zeros, or -EFAULT.
 * Context: process, may sleep.
 */
static inline int herald_udata_zero(const struct ib_udata *udata)
{
	int ret;

	if (!udata || !udata->inlen)
		return 0;
	ret = check_zeroed_user(udata->inbuf, udata->inlen);
	if (ret < 0)
		return ret;
	return ret ? 0 : -EOPNOTSUPP;
}

#endif /* HERALD_UDATA_H */
