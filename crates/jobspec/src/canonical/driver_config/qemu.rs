//! Options of the driver `qemu`.

use super::option::{Driver, Kind, option, required};

/// Source: the public documentation of Nomad's driver.
const DRIVE_INTERFACES: Kind = Kind::OneOf(&[
    "ide", "scsi", "sd", "mtd", "floppy", "pflash", "virtio", "none",
]);

pub(super) const QEMU: Driver = Driver {
    name: "qemu",
    options: &[
        required("image_path", "local/machine.img"),
        option("drive_interface", DRIVE_INTERFACES),
        option("accelerator", Kind::Text),
        option("machine_type", Kind::Text),
        option("emulator", Kind::Text),
        option("graceful_shutdown", Kind::Flag),
        option("guest_agent", Kind::Flag),
        option("args", Kind::TextList),
        option("port_map", Kind::TextMap),
    ],
    refused: &[],
};
