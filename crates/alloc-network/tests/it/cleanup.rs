//! Removal of networks: at an allocation's end, and of what a killed agent left.

use std::fs;

use alloc_network::{Mode, Source};

use crate::machine::{Machine, call, elements, plan, remove, run, serve};

const AGENT: Source = Source::Agent;

#[test]
fn the_removal_leaves_no_rule_namespace_interface_or_lease() {
    let Some(machine) = Machine::new() else {
        return;
    };
    let networks = machine.networks();
    let plan = plan(1, Mode::Bridge, &[(None, 8080, 80)]);
    networks.set_up(&plan, &AGENT).unwrap();
    assert_eq!((elements(), machine.pins(), machine.leases()), (4, 1, 1));
    assert_eq!(machine.interfaces().len(), 1);
    for _ in 0..2 {
        remove(&networks, plan.alloc_id);
        assert_eq!((elements(), machine.pins(), machine.leases()), (0, 0, 0));
        assert_eq!(machine.interfaces(), [""; 0]);
        assert_eq!(networks.all(), []);
    }
}

/// The record is written before each step: whichever was the last, the removal finds the rest.
#[test]
fn an_agent_that_was_killed_between_two_steps_leaves_nothing() {
    let Some(machine) = Machine::new() else {
        return;
    };
    let networks = machine.networks();
    let plan = plan(1, Mode::Bridge, &[(None, 8080, 80)]);
    let record = machine
        .directory
        .path()
        .join("networks")
        .join(plan.alloc_id.to_string())
        .join("network.json");
    for step in ["record", "file", "namespace", "plugins", "rules"] {
        let made = networks.set_up(&plan, &AGENT).unwrap();
        // As it was before the end of the set-up.
        let mut value: serde_json::Value =
            serde_json::from_slice(&fs::read(&record).unwrap()).unwrap();
        value["done"] = serde_json::Value::Null;
        fs::write(&record, value.to_string()).unwrap();
        if step != "rules" {
            run("nft", "flush ruleset");
        }
        if matches!(step, "record" | "file") {
            nix::mount::umount(&made.namespace).unwrap();
        }
        if step == "record" {
            fs::remove_file(&made.namespace).unwrap();
        }
        // The next run of the agent.
        let networks = machine.networks();
        assert_eq!(networks.find(&plan, &AGENT), None, "{step}");
        assert_eq!(networks.all(), [(plan.alloc_id, String::new())]);
        remove(&networks, plan.alloc_id);
        let left = run("nft", "list ruleset").matches("comment").count();
        assert_eq!(
            (left, machine.pins(), machine.leases()),
            (0, 0, 0),
            "{step}"
        );
        // The kernel removes the interface of a namespace a moment after its last pin.
        let is_gone = (0..50).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(20));
            machine.interfaces().is_empty()
        });
        assert!(is_gone, "{step}: {:?}", machine.interfaces());
    }
}

#[test]
fn what_an_agent_without_its_records_left_is_swept() {
    let Some(machine) = Machine::new() else {
        return;
    };
    let networks = machine.networks();
    let gone = plan(1, Mode::Bridge, &[(None, 8080, 80)]);
    let stays = plan(2, Mode::Bridge, &[(None, 8081, 80)]);
    let pin = networks.set_up(&gone, &AGENT).unwrap().namespace;
    let network = networks.set_up(&stays, &AGENT).unwrap();
    serve(&network, 80, "stays");
    fs::remove_dir_all(
        machine
            .directory
            .path()
            .join("networks")
            .join(gone.alloc_id.to_string()),
    )
    .unwrap();
    nix::mount::umount(&pin).unwrap();
    fs::remove_file(&pin).unwrap();
    machine.networks().sweep();
    assert_eq!((elements(), machine.leases()), (4, 1));
    assert_eq!(call("10.7.0.1", 8081), Ok("stays".to_owned()));
}

#[test]
fn a_port_of_an_allocation_that_is_gone_is_taken_over() {
    let Some(machine) = Machine::new() else {
        return;
    };
    let networks = machine.networks();
    let old = plan(1, Mode::Bridge, &[(None, 8080, 80)]);
    let new = plan(2, Mode::Bridge, &[(None, 8080, 80)]);
    networks.set_up(&old, &AGENT).unwrap();
    let network = networks.set_up(&new, &AGENT).unwrap();
    serve(&network, 80, "new");
    assert_eq!(call("10.7.0.1", 8080), Ok("new".to_owned()));
    // The removal of the old one leaves the new one's port.
    remove(&networks, old.alloc_id);
    assert_eq!(call("10.7.0.1", 8080), Ok("new".to_owned()));
}
