//! Options of the driver `java`.

use super::option::{Driver, Kind, MODES, option};

pub(super) const JAVA: Driver = Driver {
    name: "java",
    options: &[
        option("jar_path", Kind::Text),
        option("class", Kind::Text),
        option("class_path", Kind::Text),
        option("jvm_options", Kind::TextList),
        option("args", Kind::TextList),
        option("pid_mode", MODES),
        option("ipc_mode", MODES),
        option("cap_add", Kind::Capabilities),
        option("cap_drop", Kind::Capabilities),
        option("work_dir", Kind::AbsolutePath),
        option("oom_score_adj", Kind::Whole(-1_000, 1_000)),
    ],
    refused: &[],
};
