//! File systems of other machines: locks and writes may be lost there, and memory that processes share
//! is not shared between machines.

use std::path::Path;

/// Numbers of file systems that other machines serve, as statfs(2) and the headers of Linux have them:
/// NFS, SMB (three generations), 9P, AFS, Ceph, Coda, NCP, OCFS2, GFS2, Lustre; and FUSE, as SSHFS and
/// other clients are.
const NETWORK: [u32; 14] = [
    0x6969,
    0xff53_4d42,
    0xfe53_4d42,
    0x517b,
    0x0102_1997,
    0x5346_414f,
    0x6b41_4653,
    0x00c3_6400,
    0x7375_7245,
    0x564c,
    0x7461_636f,
    0x0116_1970,
    0x0bd0_0bd0,
    0x6573_5546,
];

/// Whether a file system with this number may be one of another machine.
fn is_network(f_type: u32) -> bool {
    NETWORK.contains(&f_type)
}

/// Whether the file, or the folder that it will be in, may be on another machine.
pub(super) fn is_remote(path: &Path) -> bool {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let places = [Some(path), folder, Some(Path::new("."))];
    places.into_iter().flatten().find_map(type_of).is_some_and(is_network)
}

#[cfg(target_os = "linux")]
fn type_of(path: &Path) -> Option<u32> {
    let about = rustix::fs::statfs(path).ok()?;
    // Wider than 32 bits on some machines, with the sign carried over.
    Some(about.f_type as u32)
}

#[cfg(not(target_os = "linux"))]
fn type_of(_: &Path) -> Option<u32> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_systems_of_other_machines_are_known_by_their_numbers() {
        let [nfs, cifs, ninep, fuse] = [0x6969, 0xff53_4d42, 0x0102_1997, 0x6573_5546];
        for number in [nfs, cifs, ninep, fuse] {
            assert!(is_network(number), "{number:#x}");
        }
        let [ext4, btrfs, xfs, tmpfs, overlay] =
            [0xef53, 0x9123_683e, 0x5846_5342, 0x0102_1994, 0x794c_7630];
        for number in [ext4, btrfs, xfs, tmpfs, overlay] {
            assert!(!is_network(number), "{number:#x}");
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn each_place_has_a_file_system() {
        assert!(type_of(Path::new("/proc/self")).is_some_and(|number| number == 0x9fa0));
        assert!(!is_remote(Path::new("/proc/no/such/file")));
    }
}
