"""What a path is a bind mount of, from the kernel's list of mounts."""

from rocmrun.core.mountinfo import mounted_below, other_names, parse_mountinfo

# mount --bind /etc /srv/x; mount --bind /proc/sys /srv/p; a chroot with its own proc; a btrfs subvolume;
# a socket bound over a file; a blank in a name; a mount over a mount; a line that is none.
TEXT = r"""
27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
22 27 0:21 / /proc rw,relatime - proc proc rw
24 27 0:6 / /dev rw,relatime - devtmpfs devtmpfs rw
25 27 0:25 / /run rw - tmpfs tmpfs rw
40 27 254:0 /etc /srv/x rw,relatime shared:1 master:3 - ext4 /dev/vda rw
41 27 0:21 /sys /srv/p rw - proc proc rw
42 27 0:77 / /srv/chroot/proc rw - proc proc rw
43 27 0:50 /@home /home rw - btrfs /dev/vdb rw
44 43 0:50 /@home/me/secret /srv/secret rw - btrfs /dev/vdb rw
45 27 0:25 /docker.sock /srv/s rw - tmpfs tmpfs rw
46 27 254:0 /root/a\040b /srv/blank\134 rw - ext4 /dev/vda rw
47 40 254:0 /opt /srv/x rw - ext4 /dev/vda rw
short line - ext4
no separator at all
"""
MOUNTS = parse_mountinfo(TEXT)


def test_lines_that_are_no_mounts_are_skipped() -> None:
    assert len(MOUNTS) == 12
    assert parse_mountinfo("") == ()


def test_a_bind_mount_is_another_name_of_its_source() -> None:
    assert other_names("/srv/p", MOUNTS) == ("/proc/sys",)
    assert other_names("/srv/p/kernel", MOUNTS) == ("/proc/sys/kernel",)
    assert other_names("/srv/s", MOUNTS) == ("/run/docker.sock",)


def test_the_last_mount_on_a_point_is_the_one_that_is_seen() -> None:
    """/etc is covered by /opt there; seen from /etc, the covered mount is a name all the same: it may be uncovered."""
    assert other_names("/srv/x", MOUNTS) == ("/opt",)
    assert other_names("/etc/ssl", MOUNTS) == ("/srv/x/ssl",)


def test_another_proc_is_proc() -> None:
    """Of another process namespace, perhaps: its files are the kernel's all the same."""
    assert other_names("/srv/chroot/proc/sys", MOUNTS) == ("/proc/sys",)
    assert other_names("/dev/dri", MOUNTS) == ()


def test_a_subvolume_is_named_by_where_it_is_mounted() -> None:
    assert other_names("/srv/secret/key", MOUNTS) == ("/home/me/secret/key",)
    assert other_names("/home/me", MOUNTS) == ()


def test_names_are_unescaped() -> None:
    assert other_names("/srv/blank\\", MOUNTS) == ("/root/a b",)


def test_what_is_mounted_below_comes_along() -> None:
    below = dict(mounted_below("/srv", MOUNTS))

    assert below["/srv/chroot/proc"] == ("/proc",)
    assert below["/srv/p"] == ("/proc/sys",)
    assert dict(mounted_below("/srv/p", MOUNTS)) == {}
    assert dict(mounted_below("/srvx", MOUNTS)) == {}


def test_without_mounts_nothing_is_known() -> None:
    assert other_names("/srv", ()) == ()
