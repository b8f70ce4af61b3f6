//! Names, sizes and conditions of variables.

use model::Namespace;
use test_kit::Stored;

use super::*;

fn items(pairs: &[(&str, &str)]) -> VariableItems {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    pairs.iter().map(owned).collect()
}

fn request(path: &str, check_index: Option<u64>) -> PutRequest {
    PutRequest {
        variable: VariableKey::new("default", path),
        items: items(&[("user", "admin")]),
        check_index,
    }
}

fn sealed() -> SealedText {
    SealedText {
        sealed_with: "0a".to_owned(),
        ciphertext: "x".to_owned(),
    }
}

fn stored(items: VariableItems) -> StoredVariable {
    StoredVariable {
        items,
        created_at: Timestamp::from_secs(1),
        modified_at: Timestamp::from_secs(2),
        create_index: 5,
        modify_index: 7,
    }
}

fn put_namespace(objects: &mut Stored, namespace: Namespace) {
    let key = Key::Namespace(namespace.name.clone());
    objects.put(key, Entity::Namespace(Box::new(namespace)));
}

const NOW: Timestamp = Timestamp(9_000_000_000);

fn decide(
    stored: Option<&StoredVariable>,
    request: &PutRequest,
) -> Result<Option<Vec<Write>>, VariableRefusal> {
    let decided = put(
        &Stored::default().snapshot(),
        stored,
        request,
        sealed(),
        NOW,
    );
    decided.map(written)
}

/// Returns the writes; `None`: the variable stays as it is.
fn written(decision: PutDecision) -> Option<Vec<Write>> {
    match decision {
        PutDecision::Unchanged(_) => None,
        PutDecision::Write(writes) => Some(writes),
    }
}

#[test]
fn paths_have_few_characters_and_a_reserved_part() {
    let longest = "x".repeat(PATH_MAX);
    for path in [
        "a",
        "app/db",
        "a-b_c~d/E9",
        longest.as_str(),
        "nomadic/x",
        "nomad/jobs",
        "nomad/jobs/web",
        "nomad/jobs/web/group/task",
        "nomad/job-templates/x",
    ] {
        assert_eq!(path_problem(path), None, "{path}");
    }
    let longer = "x".repeat(PATH_MAX + 1);
    for path in [
        "",
        "/a",
        "a/",
        "a//b",
        "a.b",
        "a b",
        "größe",
        "nomad",
        "nomad/x",
        "nomad/jobs/a/b/c/d",
        "nomad/job-templates",
        "nomad/job-templates/a/b",
        longer.as_str(),
    ] {
        assert!(path_problem(path).is_some(), "{path}");
    }
}

#[test]
fn items_are_bounded_and_all_invalid_fields_are_named() {
    let key = VariableKey::new("default", "app");
    let value = "x".repeat(ITEMS_BYTES_MAX - 1);
    assert_eq!(check(&key, &items(&[("k", &value)])), Ok(()));
    let errors = check(&key, &items(&[("kk", &value)])).unwrap_err();
    assert!(errors.to_string().contains("limited to 64KiB"), "{errors}");
    let wrong = VariableKey::new("a b", "a b");
    let errors = check(&wrong, &VariableItems::new()).unwrap_err();
    let fields: Vec<_> = errors.0.iter().map(|error| error.field.as_str()).collect();
    assert_eq!(fields, ["path", "namespace", "items"]);
    assert!(check(&key, &items(&[("", "x")])).is_err());
}

#[test]
fn a_new_variable_is_created_and_a_stored_one_replaced_where_it_was_read() {
    let writes = decide(None, &request("app", None)).unwrap().unwrap();
    let [
        Write::Create {
            key,
            entity: Entity::Variable(new),
        },
    ] = writes.as_slice()
    else {
        panic!("{writes:?}");
    };
    assert_eq!(*key, Key::Variable(VariableKey::new("default", "app")));
    assert_eq!((new.created_at, new.modified_at), (NOW, NOW));
    let old = stored(items(&[("user", "root")]));
    let writes = decide(Some(&old), &request("app", Some(7)))
        .unwrap()
        .unwrap();
    let [
        Write::Update {
            modify_index: 7,
            entity: Entity::Variable(new),
            ..
        },
    ] = writes.as_slice()
    else {
        panic!("{writes:?}");
    };
    assert_eq!((new.created_at, new.modified_at), (old.created_at, NOW));
}

#[test]
fn the_same_items_are_not_written_again() {
    let same = stored(items(&[("user", "admin")]));
    assert_eq!(decide(Some(&same), &request("app", None)), Ok(None));
}

#[test]
fn a_check_index_must_be_that_of_the_stored_variable() {
    let old = stored(items(&[("user", "root")]));
    let variable = VariableKey::new("default", "app");
    for (stored, want, refusal) in [
        (
            Some(&old),
            0,
            VariableRefusal::Exists {
                variable: variable.clone(),
                found: 7,
            },
        ),
        (
            Some(&old),
            6,
            VariableRefusal::CheckIndex {
                variable: variable.clone(),
                want: 6,
                found: 7,
            },
        ),
        (
            None,
            6,
            VariableRefusal::CheckIndex {
                variable: variable.clone(),
                want: 6,
                found: 0,
            },
        ),
    ] {
        assert_eq!(
            decide(stored, &request("app", Some(want))),
            Err(refusal.clone())
        );
        let index = stored.map(|stored| stored.modify_index);
        assert_eq!(delete(index, &variable, Some(want)), Err(refusal));
    }
    assert!(decide(None, &request("app", Some(0))).unwrap().is_some());
}

#[test]
fn a_variable_joins_a_namespace_that_exists_and_stays() {
    let mut asked = request("app", None);
    asked.variable.namespace = "prod".to_owned();
    let mut objects = Stored::default();
    let unknown = put(&objects.snapshot(), None, &asked, sealed(), NOW);
    let unknown = unknown.map(written).unwrap_err();
    assert!(unknown.to_string().contains("nonexistent namespace"));
    put_namespace(&mut objects, Namespace::named("prod"));
    let snapshot = objects.snapshot();
    let writes = put(&snapshot, None, &asked, sealed(), NOW);
    let writes = writes.map(written).unwrap().unwrap();
    let compared = snapshot.namespace("prod").unwrap().modify_index;
    assert_eq!(
        writes[0],
        Write::require(Key::Namespace("prod".to_owned()), compared)
    );
    put_namespace(
        &mut objects,
        Namespace {
            deleting: true,
            ..Namespace::named("prod")
        },
    );
    let deleting = put(&objects.snapshot(), None, &asked, sealed(), NOW);
    let deleting = deleting.map(written).unwrap_err();
    assert!(deleting.to_string().contains("being deleted"));
}

#[test]
fn a_deletion_compares_the_variable_that_was_read() {
    let variable = VariableKey::new("default", "app");
    let write = delete(Some(7), &variable, None).unwrap();
    assert_eq!(write.expected_index(), 7);
    let missing = delete(None, &variable, None).unwrap_err();
    assert_eq!(missing.kind(), Kind::NotFound);
}
