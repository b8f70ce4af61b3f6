//! The image of a machine's disk: a file of its allocation, or below a directory of the node that the
//! operator allows.

use std::path::{Path, PathBuf};

use crate::dirs::{TaskDirs, clean};
use crate::driver::TaskMount;

/// An image as the emulator sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Image {
    pub(super) inside: PathBuf,
    /// The directory of the node with it; `None`: it is the allocation's.
    pub(super) mount: Option<TaskMount>,
}

/// Finds the image. A relative path lies in the task's directory.
///
/// Links are not looked at: the emulator opens the image in the task's root, where none leads out.
///
/// # Errors
/// The image does not exist, or is not allowed.
pub(super) fn find(path: &str, dirs: &TaskDirs, allowed: &[PathBuf]) -> Result<Image, String> {
    let path = Path::new(path);
    let inside = clean(&Path::new("/").join(path));
    if let Some(directory) = allowed.iter().find(|it| inside.starts_with(it)) {
        let directory = directory.display().to_string();
        return Ok(Image {
            inside,
            mount: Some(TaskMount {
                source: directory.clone(),
                destination: directory,
                ..TaskMount::default()
            }),
        });
    }
    let of_task = |path: &Path| dirs.root.join(path.strip_prefix("/").unwrap_or(path));
    let on_node = match inside.strip_prefix("/alloc") {
        Ok(rest) => dirs.shared.join(rest),
        Err(_) => of_task(&inside),
    };
    if on_node.symlink_metadata().is_err() {
        return Err(format!(
            "image_path: {:?} is neither a file of the allocation nor below drivers.qemu.image_paths of \
             the node: fetch it with an artifact block, as in local/machine.img, or allow its directory",
            path.display()
        ));
    }
    Ok(Image {
        inside,
        mount: None,
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use model::AllocId;

    use super::*;
    use crate::dirs::AllocDirs;

    #[test]
    fn images_are_the_allocations_or_of_allowed_directories() {
        let base = tempfile::tempdir().unwrap();
        let dirs = AllocDirs::new(base.path(), AllocId::from_random(1)).task("vm");
        fs::create_dir_all(&dirs.local).unwrap();
        fs::create_dir_all(&dirs.shared).unwrap();
        for file in [
            dirs.root.join("a.img"),
            dirs.local.join("b.img"),
            dirs.shared.join("c.img"),
        ] {
            fs::write(file, "").unwrap();
        }
        let allowed = [PathBuf::from("/srv/images")];
        let find = |path: &str| find(path, &dirs, &allowed);
        for (path, inside) in [
            ("a.img", "/a.img"),
            ("local/b.img", "/local/b.img"),
            ("/local/./b.img", "/local/b.img"),
            ("alloc/c.img", "/alloc/c.img"),
            ("../../../a.img", "/a.img"),
        ] {
            let image = find(path).unwrap();
            assert_eq!((image.inside, image.mount), (inside.into(), None), "{path}");
        }
        let shared = find("/srv/images/x/d.img").unwrap();
        assert_eq!(shared.inside, Path::new("/srv/images/x/d.img"));
        let mount = shared.mount.unwrap();
        assert_eq!(
            (mount.source.as_str(), mount.read_only),
            ("/srv/images", false)
        );
        assert_eq!(mount.source, mount.destination);
        for path in [
            "local/none.img",
            "/etc/passwd",
            "/srv/images/../secret.img",
            "/srv/imagesx/d.img",
        ] {
            let error = find(path).unwrap_err();
            assert!(
                error.contains("drivers.qemu.image_paths"),
                "{path}: {error}"
            );
        }
    }
}
