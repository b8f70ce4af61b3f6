//! A driver of the Container Storage Interface for directories, which jobs of the tests run as their
//! plugin: see `crates/csi-test-kit`.

fn main() -> std::io::Result<()> {
    csi_test_kit::main()
}
