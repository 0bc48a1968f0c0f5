# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# "make help" lists the targets. The kernel module's own makefile is Kbuild.

KVER	?= $(shell uname -r)
KDIR	?= /lib/modules/$(KVER)/build
VERSION	:= $(shell sed -n 's/^PACKAGE_VERSION="\(.*\)"/\1/p' dkms.conf)

LIBDIR	:= /usr/lib/x86_64-linux-gnu

.PHONY: all modules install modules_install user-install uninstall dkms clean help

all: modules

modules:
	@test -d "$(KDIR)" || { echo "no kernel headers in $(KDIR): install linux-headers-$(KVER), or say KDIR=" >&2; exit 1; }
	$(MAKE) -C $(KDIR) M=$(CURDIR) modules

modules_install: modules
	$(MAKE) -C $(KDIR) M=$(CURDIR) $(if $(DESTDIR),INSTALL_MOD_PATH=$(DESTDIR)) modules_install

# Provider and heraldctl; of what the lanes need, only what builds them.
USER_FILES := /etc/libibverbs.d/herald.driver $(LIBDIR)/libibverbs/libherald-rdmav34.so \
	/usr/share/man/man8/heraldctl.8 /usr/share/bash-completion/completions/heraldctl
USER_PROGRAMS := /usr/bin/heraldctl
user-install: export HERALD_SETUP := build
user-install: user
	for file in $(USER_FILES); do install -D -m 644 build/user/install$$file $(DESTDIR)$$file || exit 1; done
	for file in $(USER_PROGRAMS); do install -D -s -m 755 build/user/install$$file $(DESTDIR)$$file || exit 1; done

install: modules_install user-install

uninstall:
	rm -f $(DESTDIR)/lib/modules/$(KVER)/updates/herald.ko* $(addprefix $(DESTDIR),$(USER_FILES) $(USER_PROGRAMS))

# The sources, where dkms looks for them; Kbuild takes every file that is there.
dkms:
	rm -rf $(DESTDIR)/usr/src/herald-$(VERSION)
	mkdir -p $(DESTDIR)/usr/src/herald-$(VERSION)
	cp -a Kbuild Makefile dkms.conf LICENSE LICENSES kernel include \
		$(DESTDIR)/usr/src/herald-$(VERSION)/
	find $(DESTDIR)/usr/src/herald-$(VERSION) \( -name '*.o' -o -name '.*.cmd' \) -delete
	@echo "next: dkms install herald/$(VERSION)"

# All but the caches of the test lanes, which are outside the tree.
clean:
	rm -rf build
	find kernel tests -name '*.o' -delete -o -name '.*.cmd' -delete -o -name '*.mod' -delete \
		-o -name '*.mod.c' -delete -o -name '*.ko' -delete
	rm -f herald.o herald.ko herald.mod herald.mod.c herald.mod.o .herald*.cmd \
		.module-common.o ..module-common.o.cmd .Module.symvers.cmd .modules.order.cmd \
		Module.symvers modules.order

help:
	@echo "modules          herald.ko for the kernel in KDIR=$(KDIR)"
	@echo "user             the provider, the tools and their tests, into build/user"
	@echo "install          module (modules_install), provider and heraldctl (user-install), below DESTDIR if that is set"
	@echo "uninstall        removes what install has installed for the kernel KVER=$(KVER)"
	@echo "dkms             the module's sources to /usr/src/herald-$(VERSION), for dkms"
	@echo "demo             from nothing to NFS over RDMA in a UML kernel, step by step: seconds once built"
	@echo "test             everything, on the lanes in LANES=\"host uml debug stock pair\""
	@echo "test-long        every job in all its lanes, which takes hours"
	@echo "mutations        break each rule's code on purpose, see its tests fail: hours"
	@echo "lane-uml         one lane (lane-debug, lane-stock, lane-pair), the jobs in JOBS_UML"
	@echo "lanes-setup      fetch and build what the lanes need, run nothing"
	@echo "bench            speed against rxe, siw and the machine's limits; BENCH=short for a first look"
	@echo "bench-native     what polling and arming cost in user space, beside librxe"
	@echo "torture          completion events under random load in a UML kernel, for TORTURE_SECONDS (an hour)"
	@echo "fuzz             arbitrary bytes as packets, under sanitizers, for FUZZ_SECONDS (ten minutes) each"
	@echo "clean            remove all that was built here"

-include $(wildcard mk/*.mk)
