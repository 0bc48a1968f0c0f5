/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Makes an older kernel look like the newest one.  Kbuild includes this file
 * ahead of every source file and defines the HAVE_ symbols, see probes.txt.
 * What differs in a prototype of struct ib_device_ops is in ops.c.
 */
#ifndef HERALD_COMPAT_H
#define HERALD_COMPAT_H

#include <linux/types.h>

/* needed until 6.12: devices belong to a network namespace from their start */
#ifndef HAVE_ALLOC_DEVICE_WITH_NET
#define ib_alloc_device_with_net(drv_struct, member, net)	\
	((void)(net), ib_alloc_device(drv_struct, member))
#endif

/* needed until 6.12 */
#ifndef HAVE_UMEM_GET_VA
#define ib_umem_get_va(device, addr, size, access)	ib_umem_get(device, addr, size, access)
#endif

/* needed until 6.12; the newer one has a default for gfp */
#ifndef HAVE_KZALLOC_OBJ
#define kzalloc_obj(obj, gfp)	\
	({							\
		typeof(obj) *_obj = kzalloc(sizeof(*_obj), gfp);	\
								\
		_obj;						\
	})
#endif

/* needed until 6.12 */
#ifndef HAVE_HRTIMER_SETUP
#define hrtimer_setup(timer, fn, clock_id, mode)	\
	do {						\
		typeof(timer) _timer = (timer);		\
							\
		hrtimer_init(_timer, clock_id, mode);	\
		_timer->function = (fn);		\
	} while (0)
#endif

/* needed until 6.12; no number of the older one's, and never raised there */
#ifdef HAVE_SPEED_CHANGE_EVENT
#define HERALD_HAS_SPEED_CHANGE		true
#define HERALD_EVENT_SPEED_CHANGE	IB_EVENT_DEVICE_SPEED_CHANGE
#else
#define HERALD_HAS_SPEED_CHANGE		false
#define HERALD_EVENT_SPEED_CHANGE	20
#endif

/* needed until 6.12; the older one takes the socket that is around the sock */
#ifdef HAVE_UDP_TUNNEL_SOCK
#define herald_udp_tunnel_setup(net, sock, cfg)	setup_udp_tunnel_sock(net, (sock)->sk, cfg)
#define herald_udp_tunnel_release(sock)		udp_tunnel_sock_release((sock)->sk)
#else
#define herald_udp_tunnel_setup(net, sock, cfg)	setup_udp_tunnel_sock(net, sock, cfg)
#define herald_udp_tunnel_release(sock)		udp_tunnel_sock_release(sock)
#endif

/* needed until 6.12 */
#ifdef HAVE_FLOWI4_DSCP
#define herald_flow4_set_tos(fl, tos)	((fl)->flowi4_dscp = inet_dsfield_to_dscp(tos))
#else
#define herald_flow4_set_tos(fl, tos)	((fl)->flowi4_tos = (tos) & INET_DSCP_MASK)
#endif

/* needed until 6.12: crc32_le() with what the processor has for it; see crc.c */
#ifdef HAVE_CRC32_OPTIMIZATIONS
#define herald_crc32_le(crc, p, len)	crc32_le(crc, p, len)
static inline int herald_crc_init(void) { return 0; }
static inline void herald_crc_exit(void) {}
#else
u32 herald_crc32_le(u32 crc, const void *p, size_t len);
int herald_crc_init(void);
void herald_crc_exit(void);
#endif

/* The operations whose prototypes differ; see ops.c. */
extern const struct ib_device_ops herald_compat_ops;

#endif /* HERALD_COMPAT_H */
