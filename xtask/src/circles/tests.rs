//! Circles in small crates of a few files.

use super::*;

fn modules(files: &[(&str, &str)]) -> Modules {
    let files = files.iter().map(|(path, text)| {
        let module: ModulePath = path
            .split("::")
            .filter(|part| !part.is_empty())
            .map(str::to_owned)
            .collect();
        (
            module,
            (PathBuf::from(path), RustFile::parse(text).unwrap()),
        )
    });
    Modules {
        files: files.collect(),
    }
}

fn circles(files: &[(&str, &str)]) -> Vec<Vec<String>> {
    let modules = modules(files);
    strongly_connected(&modules.dependencies())
        .into_iter()
        .map(|group| group.into_iter().map(|path| path.join("::")).collect())
        .collect()
}

#[test]
fn two_files_that_import_each_other_are_a_circle() {
    let found = circles(&[
        ("", "mod a; mod b;"),
        ("a", "use crate::b::B; pub struct A;"),
        ("b", "fn f() -> crate::a::A { todo() } pub struct B;"),
    ]);
    assert_eq!(found, [["a", "b"]]);
}

#[test]
fn a_root_that_only_declares_and_re_exports_is_in_no_circle() {
    let found = circles(&[
        ("", "mod a; mod b; pub use a::A; pub use b::B;"),
        ("a", "pub struct A;"),
        ("b", "use crate::A; pub struct B;"),
    ]);
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn a_path_through_a_re_export_leads_to_the_definition() {
    let found = circles(&[
        ("", "mod a; mod b; pub use a::*; pub use b::B as C;"),
        ("a", "use crate::C; pub struct A;"),
        ("b", "use crate::A; pub struct B;"),
    ]);
    assert_eq!(found, [["a", "b"]]);
}

#[test]
fn a_parent_and_a_child_that_need_each_other_are_a_circle() {
    let found = circles(&[
        ("", "mod a;"),
        ("a", "mod part; pub struct A(part::Part);"),
        ("a::part", "use super::A; pub struct Part; impl A {}"),
    ]);
    assert_eq!(found, [["a", "a::part"]]);
}

#[test]
fn a_path_through_an_imported_module_counts() {
    let found = circles(&[
        ("", "mod a; mod queues;"),
        (
            "a",
            "use crate::queues; pub struct A; fn f() { queues::deep::f() }",
        ),
        ("queues", "pub mod deep;"),
        ("queues::deep", "use crate::a::A; pub fn f() {}"),
    ]);
    assert_eq!(found, [["a", "queues::deep"]]);
}

#[test]
fn a_trailing_comma_names_nothing() {
    let found = circles(&[
        ("", "mod a;"),
        ("a", "mod part; mod other; pub struct A; use part::Part;"),
        ("a::part", "use super::{other,}; pub struct Part;"),
        ("a::other", ""),
    ]);
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn tests_are_left_out() {
    let found = circles(&[
        ("", "mod a; mod b;"),
        (
            "a",
            "pub struct A; #[cfg(test)] mod tests { use crate::b::B; }",
        ),
        ("b", "use crate::a::A; pub struct B;"),
    ]);
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn groups_of_three_are_found_and_others_are_not() {
    let found = circles(&[
        ("", "mod a; mod b; mod c; mod d;"),
        ("a", "use super::b::{self, B}; pub struct A;"),
        ("b", "use super::{c::C, d}; pub struct B;"),
        ("c", "use super::a; fn f() { a::f() } pub struct C;"),
        ("d", "pub struct D;"),
    ]);
    assert_eq!(found, [["a", "b", "c"]]);
}

#[test]
fn a_re_export_that_its_own_file_uses_is_a_dependency() {
    for export in ["pub(crate) use part::Part;", "pub use part::*;"] {
        let a = format!("mod part; {export} pub struct A(Part);");
        let found = circles(&[
            ("", "mod a;"),
            ("a", &a),
            ("a::part", "use super::A; pub struct Part;"),
        ]);
        assert_eq!(found, [["a", "a::part"]], "{export}");
    }
}

#[test]
fn a_re_exported_function_that_its_own_file_calls_is_a_dependency() {
    let part = "use super::A; pub fn part() {}";
    let files = |a| [("", "mod a;"), ("a", a), ("a::part", part)];
    let called = files("mod part; pub(super) use part::part; struct A; fn f() { part() }");
    assert_eq!(circles(&called), [["a", "a::part"]]);
    let field =
        files("mod part; pub(super) use part::part; struct A { part: u8 } fn f() { x.part() }");
    assert!(circles(&field).is_empty());
}

#[test]
fn a_visibility_names_nothing() {
    let found = circles(&[
        ("", "mod a;"),
        ("a", "mod part; use part::Part;"),
        ("a::part", "pub(in crate::a) struct Part;"),
    ]);
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn a_public_tuple_field_names_its_types() {
    let found = circles(&[
        ("", "mod a;"),
        ("a", "mod part; use part::Part; pub struct A;"),
        ("a::part", "pub struct Part(pub (crate::a::A, u8));"),
    ]);
    assert_eq!(found, [["a", "a::part"]]);
}

#[test]
fn two_files_that_call_each_others_methods_are_a_circle() {
    let b = "use crate::a::A; impl A { fn y(&self) {} }";
    for call in ["self.y()", "Self::y(self)", "x(|| vec![self.y::<u8>()])"] {
        let a = format!("pub struct A; impl A {{ fn x(&self) {{ {call} }} }}");
        let found = circles(&[("", "mod a; mod b;"), ("a", &a), ("b", b)]);
        assert_eq!(found, [["a", "b"]], "{call}");
    }
    let field = "pub struct A; impl A { fn x(&self) { self.y; self.z.y(); other.y() } }";
    let found = circles(&[("", "mod a; mod b;"), ("a", field), ("b", b)]);
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn a_file_and_one_in_its_folder_may_call_each_others_methods() {
    let found = circles(&[
        ("", "mod a;"),
        (
            "a",
            "mod part; pub struct A; impl A { fn x(&self) { self.y() } }",
        ),
        (
            "a::part",
            "use super::*; impl A { fn y(&self) { self.x() } }",
        ),
    ]);
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn two_files_of_a_folder_that_call_each_others_methods_are_a_circle() {
    let found = circles(&[
        ("", "mod a;"),
        ("a", "mod one; mod two; pub struct A<T>(T);"),
        (
            "a::one",
            "use super::A; impl<T: Into<u8>> A<T> { fn x(&self) { self.y() } }",
        ),
        (
            "a::two",
            "use super::*; impl<T> Trait<u8> for A<T> where T: Sized { fn y(&self) { self.x() } }",
        ),
    ]);
    assert_eq!(found, [["a::one", "a::two"]]);
}

#[test]
fn a_circle_through_methods_fails_the_check() {
    let folder = std::env::temp_dir().join(format!("xtask-methods-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let files = [
        ("lib.rs", "mod a; mod b;"),
        ("a.rs", "pub struct A; impl A { fn x(&self) { self.y() } }"),
        ("b.rs", "use crate::a::A; impl A { fn y(&self) {} }"),
    ];
    for (name, text) in files {
        std::fs::write(folder.join(name), text).unwrap();
    }
    let found = check(&folder, vec![folder.join("lib.rs")]);
    std::fs::remove_dir_all(&folder).unwrap();
    let message = found.unwrap_err().to_string();
    assert!(message.starts_with("1 circles of files"), "{message}");
    assert!(message.contains("a.rs needs crate::b"), "{message}");
    assert!(message.contains("b.rs needs crate::a"), "{message}");
}

#[test]
fn circles_below_a_test_target_are_found() {
    let folder = std::env::temp_dir().join(format!("xtask-circles-{}", std::process::id()));
    let tests = folder.join("tests");
    std::fs::create_dir_all(&tests).unwrap();
    let files = [
        ("tests/it.rs", "mod a; #[path = \"../shared.rs\"] mod b;"),
        ("tests/a.rs", "use crate::b::B; pub struct A;"),
        ("shared.rs", "use crate::a::A; pub struct B;"),
    ];
    for (name, text) in files {
        std::fs::write(folder.join(name), text).unwrap();
    }
    let found = check(&folder, vec![tests.join("it.rs")]);
    std::fs::remove_dir_all(&folder).unwrap();
    let message = found.unwrap_err().to_string();
    assert!(message.contains("tests/a.rs needs crate::b"), "{message}");
    assert!(message.contains("shared.rs needs crate::a"), "{message}");
}

#[test]
fn every_target_of_the_workspace_is_a_root() {
    let metadata = serde_json::json!({ "packages": [
        { "source": null, "targets": [{ "src_path": "/w/a/tests/it.rs" }, { "src_path": "/w/a/src/lib.rs" }] },
        { "source": "registry+https://example.org", "targets": [{ "src_path": "/r/b/src/lib.rs" }] },
    ] });
    let roots = crate::metadata::target_roots(&metadata).unwrap();
    let expected = ["/w/a/src/lib.rs", "/w/a/tests/it.rs"].map(PathBuf::from);
    assert_eq!(roots, expected);
}
