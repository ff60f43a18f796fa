"""Every system call number, with odd arguments, in each kind of sandbox."""

import re
import time
from pathlib import Path

from box import backends
from world import device_nodes, mode, quick


def host():
    """The current state of what no sandbox may change."""
    read = {
        path: Path(path).read_text()
        for path in (
            "/proc/sys/kernel/hostname",
            "/proc/sys/kernel/domainname",
            "/proc/swaps",
            "/proc/sys/kernel/core_pattern",
            "/proc/sys/kernel/random/boot_id",
            "/proc/sys/vm/overcommit_memory",
        )
    }
    mounts = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
    read["mounts"] = sorted(it for it in mounts if "/rb-" not in it and "engine" not in it)
    read["nodes"] = [(it, mode(f"/dev/{it}")) for it in ("null", "zero", "full", "random", "urandom", "tty")]
    read["modules"] = len(Path("/proc/modules").read_text().splitlines()) if Path("/proc/modules").exists() else 0
    return read


@quick
def no_system_call_changes_the_host(world):
    before, offset = host(), time.time() - time.monotonic()
    with device_nodes():
        for name, target in backends(world):
            said = target.run(f"{target.probes}/sweep 2>/dev/null | grep -a 'made '", limit=90)
            made = re.search(r"made (\d+) calls", said)
            assert made and int(made[1]) > 3000, f"{name}: {said!r}"
            target.is_well()
            now = host()
            assert now == before, f"{name} changed {[key for key in before if now[key] != before[key]]}"
            assert abs(time.time() - time.monotonic() - offset) < 5, f"{name} set the clock"
