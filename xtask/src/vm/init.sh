#!/bin/sh
# The first process of a guest: mounts what tests look at, runs /run/plan, and ends the guest.
# The results leave through a serial port of their own, so that nothing the kernel prints gets between.
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/pts /dev/shm
mount -t devpts devpts /dev/pts
mount -t tmpfs tmp /dev/shm
chmod 1777 /tmp
[ ! -d /sys/kernel/tracing ] || mount -t tracefs tracing /sys/kernel/tracing
[ ! -d /sys/kernel/debug ] || mount -t debugfs debug /sys/kernel/debug
[ ! -d /sys/fs/bpf ] || mount -t bpf bpf /sys/fs/bpf
[ ! -d /sys/fs/cgroup ] || mount -t cgroup2 cgroup /sys/fs/cgroup
# perf_event's cgroups exist from the first controller on that is enabled for the root's children.
echo +pids >/sys/fs/cgroup/cgroup.subtree_control
ln -s /proc/self/fd /dev/fd
ifconfig lo 127.0.0.1 up
hostname guest
# The kernel's own default, which Debian tightens, and the counters' release to user mode.
echo 2 >/proc/sys/kernel/perf_event_paranoid
[ ! -e /proc/sys/kernel/perf_user_access ] || echo 1 >/proc/sys/kernel/perf_user_access
[ ! -e /sys/kernel/mm/transparent_hugepage ] || echo madvise >/sys/kernel/mm/transparent_hugepage/enabled
export PATH=/bin:/sbin:/usr/bin:/usr/sbin HOME=/root TMPDIR=/tmp TERM=dumb
. /run/environment
stty -F "$RESULTS" raw -echo
# Tests that find a terminal may behave otherwise, so a pipe stands between.
mkfifo /run/results
cat </run/results >"$RESULTS" &
exec 3>/run/results
sh /run/plan </dev/null >&3 2>&1
echo "@@ done" >&3
exec 3>&-
wait
poweroff -f
