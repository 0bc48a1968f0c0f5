// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The sockets: one for IPv4 and one for IPv6 in each network namespace that has
 * devices.  They receive; of sending, they only say that multicast is not looped
 * back, since members on this host are served by the local transport.
 *
 * A socket with a receive function (encap_rcv) gets GSO packets taken apart, unless
 * they are marked as a tunnel's.  So a hook marks them: where nothing else is lost
 * by it, on their way to a local port which is ours.
 */
#include <linux/ipv6.h>
#include <linux/list.h>
#include <linux/moduleparam.h>
#include <linux/mutex.h>
#include <linux/net.h>
#include <linux/netfilter.h>
#include <linux/netfilter_ipv4.h>
#include <linux/netfilter_ipv6.h>
#include <linux/slab.h>
#include <linux/udp.h>
#include <net/ip.h>
#include <net/ipv6.h>
#include <net/sock.h>
#include <net/udp_tunnel.h>
#include <rdma/ib_verbs.h>

#include "device.h"
#include "wire.h"

/* --------------------------------------------------------- parameter -- */

static enum herald_wire_mode wire_mode = HERALD_WIRE_AUTO;

static const char * const wire_modes[] = {
	[HERALD_WIRE_AUTO] = "auto",
	[HERALD_WIRE_OFF] = "off",
	[HERALD_WIRE_FORCE] = "force",
};

static int wire_mode_set(const char *value, const struct kernel_param *param)
{
	int mode = sysfs_match_string(wire_modes, value);

	if (mode < 0)
		return mode;
	wire_mode = mode;
	return 0;
}

static int wire_mode_get(char *buffer, const struct kernel_param *param)
{
	return sysfs_emit(buffer, "%s\n", wire_modes[wire_mode]);
}

static const struct kernel_param_ops wire_mode_ops = {
	.set = wire_mode_set,
	.get = wire_mode_get,
};

module_param_cb(wire, &wire_mode_ops, NULL, 0444);
__MODULE_PARM_TYPE(wire, "auto|off|force");	/* which module_param_cb() leaves out */
MODULE_PARM_DESC(wire, "RoCEv2 packets: auto (between hosts and namespaces), off, force (always)");

enum herald_wire_mode herald_wire_mode(void)
{
	return wire_mode;
}

/* ------------------------------------------------------------- trains -- */

#ifdef CONFIG_NETFILTER

static bool is_our_train(const struct sk_buff *skb, u8 pf)
{
	u8 proto = pf == NFPROTO_IPV4 ? ip_hdr(skb)->protocol : ipv6_hdr(skb)->nexthdr;
	struct udphdr buf, *udp;

	if (proto != IPPROTO_UDP)
		return false;
	udp = skb_header_pointer(skb, skb_transport_offset(skb), sizeof(buf), &buf);
	return udp && udp->dest == htons(ROCE_V2_UDP_DPORT);
}

/* One that cannot be marked, because others see it and there is no memory, is taken apart. */
static unsigned int take_whole(void *priv, struct sk_buff *skb, const struct nf_hook_state *state)
{
	if (skb_is_gso(skb) && skb_shinfo(skb)->gso_type & SKB_GSO_UDP_L4 &&
	    is_our_train(skb, state->pf) && !skb_unclone(skb, GFP_ATOMIC))
		skb_shinfo(skb)->gso_type |= SKB_GSO_UDP_TUNNEL_CSUM;
	return NF_ACCEPT;
}

static const struct nf_hook_ops train_hooks[] = {
	{
		.hook = take_whole,
		.pf = NFPROTO_IPV4,
		.hooknum = NF_INET_LOCAL_IN,
		.priority = NF_IP_PRI_LAST,
	}, {
		.hook = take_whole,
		.pf = NFPROTO_IPV6,
		.hooknum = NF_INET_LOCAL_IN,
		.priority = NF_IP6_PRI_LAST,
	},
};

static int hook_trains(struct net *net)
{
	return nf_register_net_hooks(net, train_hooks, ARRAY_SIZE(train_hooks));
}

static void unhook_trains(struct net *net)
{
	nf_unregister_net_hooks(net, train_hooks, ARRAY_SIZE(train_hooks));
}

#else

static int hook_trains(struct net *net)
{
	return 0;
}

static void unhook_trains(struct net *net)
{
}

#endif /* CONFIG_NETFILTER */

/* ------------------------------------------------------------ sockets -- */

static void set_mcast_loop(struct sock *sk, bool on)
{
	if (on) {
		inet_set_bit(MC_LOOP, sk);
		inet6_set_bit(MC6_LOOP, sk);
	} else {
		inet_clear_bit(MC_LOOP, sk);
		inet6_clear_bit(MC6_LOOP, sk);
	}
}

static struct sock *open_socket(struct net *net, sa_family_t family)
{
	struct udp_tunnel_sock_cfg tunnel = {
		.encap_type = 1,
		.encap_rcv = herald_wire_rcv,
		.encap_err_lookup = herald_wire_icmp_error,
	};
	struct udp_port_cfg cfg = {
		.family = family,
		.local_udp_port = htons(ROCE_V2_UDP_DPORT),
		.ipv6_v6only = 1,
	};
	struct socket *sock;
	int one = 1;
	int err;

	err = udp_sock_create(net, &cfg, &sock);
	if (err)
		return ERR_PTR(err);
	herald_udp_tunnel_setup(net, sock, &tunnel);
	set_mcast_loop(sock->sk, wire_mode == HERALD_WIRE_FORCE);
	err = sock->ops->setsockopt(sock, SOL_UDP, UDP_GRO, KERNEL_SOCKPTR(&one), sizeof(one));
	if (err) {
		herald_udp_tunnel_release(sock);
		return ERR_PTR(err);
	}
	return sock->sk;
}

static void close_socket(struct sock *sk)
{
	if (sk)
		herald_udp_tunnel_release(sk->sk_socket);
}

static int open_sockets(struct herald_wire_net *wire)
{
	struct sock *sk = open_socket(wire->net, AF_INET);

	if (IS_ERR(sk))
		return PTR_ERR(sk);
	wire->sk4 = sk;
	if (!ipv6_mod_enabled())
		return 0;
	sk = open_socket(wire->net, AF_INET6);
	if (IS_ERR(sk)) {
		close_socket(wire->sk4);
		return PTR_ERR(sk);
	}
	wire->sk6 = sk;
	return 0;
}

static void close_sockets(struct herald_wire_net *wire)
{
	close_socket(wire->sk4);
	close_socket(wire->sk6);
}

/* --------------------------------------------------------- namespaces -- */

static DEFINE_MUTEX(wire_mutex);	/* the list and what is on it, and who is attached */
static LIST_HEAD(wire_nets);

static struct herald_wire_net *wire_net_open(struct net *net)
{
	struct herald_wire_net *wire = kzalloc_obj(*wire, GFP_KERNEL);
	int err;

	if (!wire)
		return ERR_PTR(-ENOMEM);
	wire->net = net;
	err = open_sockets(wire);
	if (err)
		goto free;
	err = hook_trains(net);
	if (err)
		goto close;
	list_add(&wire->node, &wire_nets);
	return wire;

close:
	close_sockets(wire);
free:
	kfree(wire);
	if (err == -EADDRINUSE)
		pr_err("herald: port %d is in use in this network namespace (is rdma_rxe loaded?)\n",
		       ROCE_V2_UDP_DPORT);
	return ERR_PTR(err);
}

static struct herald_wire_net *wire_net_get(struct net *net)
{
	struct herald_wire_net *wire;

	lockdep_assert_held(&wire_mutex);
	list_for_each_entry(wire, &wire_nets, node)
		if (wire->net == net)
			goto found;
	wire = wire_net_open(net);
	if (IS_ERR(wire))
		return wire;
found:
	wire->users++;
	return wire;
}

static void wire_net_put(struct herald_wire_net *wire)
{
	lockdep_assert_held(&wire_mutex);
	if (--wire->users)
		return;
	list_del(&wire->node);
	unhook_trains(wire->net);
	close_sockets(wire);
	kfree_rcu(wire, rcu);
}

int herald_wire_attach(struct herald_dev *dev, struct net *net)
{
	struct herald_wire_net *wire;

	if (wire_mode == HERALD_WIRE_OFF)
		return 0;
	mutex_lock(&wire_mutex);
	wire = wire_net_get(net);
	if (!IS_ERR(wire))
		rcu_assign_pointer(dev->wire, wire);
	mutex_unlock(&wire_mutex);
	return PTR_ERR_OR_ZERO(wire);
}

void herald_wire_detach(struct herald_dev *dev)
{
	struct herald_wire_net *wire;

	mutex_lock(&wire_mutex);
	wire = rcu_replace_pointer(dev->wire, NULL, lockdep_is_held(&wire_mutex));
	if (wire) {
		/* who still sees it, under RCU, remembers no route: wire_route.c */
		herald_routes_drop_all(dev);
		wire_net_put(wire);
	}
	mutex_unlock(&wire_mutex);
}
