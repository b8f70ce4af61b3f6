//! Allocations on the bridge: their ports, as the machine and other allocations reach them.

use alloc_network::{Mode, Source};

use crate::machine::{Machine, call, call_from, elements, plan, remove, run, serve};

const AGENT: Source = Source::Agent;

#[test]
fn a_mapped_port_is_reached_from_the_machine_from_other_allocations_and_from_its_own() {
    let Some(machine) = Machine::new() else {
        return;
    };
    let networks = machine.networks();
    // A Docker Engine on the machine.
    run("iptables", "-P FORWARD DROP");
    let web = plan(1, Mode::Bridge, &[(None, 8080, 80)]);
    let db = plan(2, Mode::Bridge, &[(Some("10.7.0.1"), 5432, 5432)]);
    let web = networks.set_up(&web, &AGENT).unwrap();
    let db = networks.set_up(&db, &AGENT).unwrap();
    serve(&web, 80, "web");
    serve(&db, 5432, "db");
    assert_ne!(web.status.address, db.status.address);
    let of = |name: &str| Ok(name.to_owned());
    for address in ["127.0.0.1", "10.7.0.1", "172.26.64.1"] {
        assert_eq!(call(address, 8080), of("web"), "{address}");
    }
    assert_eq!(call("10.7.0.1", 5432), of("db"));
    assert!(
        call("127.0.0.1", 5432).is_err(),
        "the port is on one address"
    );
    // From the other allocation: by its own address, and by the machine's.
    assert_eq!(call_from(&db, &web.status.address, 80), of("web"));
    assert_eq!(call_from(&db, "10.7.0.1", 8080), of("web"));
    assert_eq!(call_from(&web, "10.7.0.1", 5432), of("db"));
    // From the allocation itself.
    assert_eq!(call_from(&web, "10.7.0.1", 8080), of("web"));
    assert_eq!(call_from(&web, "127.0.0.1", 80), of("web"));
}

#[test]
fn allocations_do_not_reach_the_machines_loopback_addresses() {
    let Some(machine) = Machine::new() else {
        return;
    };
    let networks = machine.networks();
    let web = networks
        .set_up(&plan(1, Mode::Bridge, &[]), &AGENT)
        .unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:7000").unwrap();
    let file = std::fs::File::open(&web.namespace).unwrap();
    let from_inside = std::thread::spawn(move || {
        nix::sched::setns(file, nix::sched::CloneFlags::CLONE_NEWNET).unwrap();
        // As a task with the capability NET_ADMIN would.
        run("ip", "addr del 127.0.0.1/8 dev lo");
        run("ip", "route add 127.0.0.1/32 via 172.26.64.1 dev eth0");
        std::fs::write("/proc/sys/net/ipv4/conf/all/route_localnet", "1").unwrap();
        call("127.0.0.1", 7000)
    });
    assert!(from_inside.join().unwrap().is_err());
    drop(listener);
}

#[test]
fn ports_are_mapped_for_ipv6() {
    let Some(mut machine) = Machine::new() else {
        return;
    };
    machine.config.bridge_subnet_ipv6 = "fd00:a110::/64".to_owned();
    let networks = machine.networks();
    let plan = plan(
        1,
        Mode::Bridge,
        &[(None, 8080, 80), (Some("fd07::1"), 8081, 80)],
    );
    let web = networks.set_up(&plan, &AGENT).unwrap();
    serve(&web, 80, "web");
    assert!(
        web.status.address_ipv6.starts_with("fd00:a110::"),
        "{:?}",
        web.status
    );
    for port in [8080, 8081] {
        assert_eq!(call("fd07::1", port), Ok("web".to_owned()), "{port}");
    }
    assert_eq!(call("10.7.0.1", 8080), Ok("web".to_owned()));
    assert_eq!(call_from(&web, "fd07::1", 8080), Ok("web".to_owned()));
}

#[test]
fn a_network_outlives_the_agent_and_is_found_whole() {
    let Some(machine) = Machine::new() else {
        return;
    };
    let plan = plan(1, Mode::Bridge, &[(None, 8080, 80)]);
    let made = machine.networks().set_up(&plan, &AGENT).unwrap();
    serve(&made, 80, "web");
    // The next run of the agent.
    let networks = machine.networks();
    assert_eq!(networks.find(&plan, &AGENT), Some(made.clone()));
    // Another program has flushed all rules.
    run("nft", "flush ruleset");
    assert!(call("10.7.0.1", 8080).is_err());
    assert_eq!(networks.find(&plan, &AGENT), Some(made));
    assert_eq!(call("10.7.0.1", 8080), Ok("web".to_owned()));
    run("nft", "flush ruleset");
    networks.repair();
    assert_eq!(call("10.7.0.1", 8080), Ok("web".to_owned()));
    // A reboot.
    let rebooted = alloc_network::Networks::new(alloc_network::Settings {
        config: machine.config.clone(),
        state_dir: machine.directory.path().join("networks"),
        boot_id: "boot-2".to_owned(),
    });
    assert_eq!(rebooted.find(&plan, &AGENT), None);
}

#[test]
fn an_allocation_of_mode_none_has_a_loopback_interface_alone() {
    let Some(machine) = Machine::new() else {
        return;
    };
    let networks = machine.networks();
    let plan = plan(1, Mode::None, &[]);
    let alone = networks.set_up(&plan, &AGENT).unwrap();
    serve(&alone, 80, "alone");
    assert_eq!(alone.status.any_address(), "");
    assert_eq!(call_from(&alone, "127.0.0.1", 80), Ok("alone".to_owned()));
    assert!(call_from(&alone, "10.7.0.1", 80).is_err());
    assert_eq!(networks.find(&plan, &AGENT), Some(alone));
    remove(&networks, plan.alloc_id);
    assert_eq!(machine.pins(), 0);
}

/// Fifty allocations at once, within the half minute of the scenario.
#[test]
fn scenario_067_many_allocations_at_once_get_addresses_of_their_own() {
    let Some(machine) = Machine::new() else {
        return;
    };
    let networks = machine.networks();
    let began = std::time::Instant::now();
    let statuses = std::thread::scope(|scope| {
        let makers: Vec<_> = (0..5_u16)
            .map(|maker| {
                let networks = &networks;
                scope.spawn(move || {
                    let numbers = (0..10).map(|it| maker * 10 + it);
                    let make = |number: u16| {
                        let plan =
                            plan(number.into(), Mode::Bridge, &[(None, 20_000 + number, 80)]);
                        networks.set_up(&plan, &AGENT).unwrap().status.address
                    };
                    numbers.map(make).collect::<Vec<_>>()
                })
            })
            .collect();
        let all = makers.into_iter().flat_map(|maker| maker.join().unwrap());
        all.collect::<std::collections::BTreeSet<_>>()
    });
    assert_eq!(statuses.len(), 50);
    assert!(began.elapsed().as_secs() < 30, "{:?}", began.elapsed());
    assert_eq!(elements(), 50 * 4);
    for (alloc_id, _) in networks.all() {
        remove(&networks, alloc_id);
    }
    assert_eq!(machine.interfaces(), [""; 0]);
    assert_eq!((elements(), machine.pins(), machine.leases()), (0, 0, 0));
}
