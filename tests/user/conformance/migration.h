/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Alternate paths, and moving to them (ibv_modify_qp(3)). */
#pragma once

#include "pair.h"

namespace conformance {

/* Loads an alternate path. */
Attr alt_attr(const Device &dev, int sgid_index, int dgid_index, uint8_t timeout = 8, uint16_t pkey_index = 0);
Attr mig_attr(ibv_mig_state state);
/* Loads it and asks for REARM. */
Attr rearm_attr(Attr alt);

ibv_qp_attr query_path(ibv_qp *qp);
ibv_mig_state mig_state(ibv_qp *qp);
const char *mig_name(ibv_mig_state state);
void expect_mig_state(ibv_qp *qp, ibv_mig_state state);

/* An IPv4 address that an interface has while this lives. */
class Address {
public:
	Address(std::string netdev, std::string address);
	~Address();
	Address(Address &&o) noexcept;
	Address &operator=(Address &&) = delete;

	/* Its place in the device's GID table; waits until it is there. */
	int index(const Device &dev) const;
	/* Waits until it is gone from the table. */
	void remove(const Device &dev);
	void add();

private:
	std::optional<int> look(const Device &dev) const;

	std::string netdev_, address_;
	bool there_ = false;
};

} // namespace conformance
