//! Networks of operators' files, with plugins that are scripts.

use std::fs;

use alloc_network::{Mode, Source};

use crate::machine::{Machine, call, plan, remove, script, serve};

const AGENT: Source = Source::Agent;

/// A plugin that writes its calls to a file and fails at the first two ADD.
const FLAKY: &str = r#"log="$(dirname "$0")/log"
printf '%s\n' "$CNI_COMMAND" >> "$log"
cat > "$(dirname "$0")/$CNI_COMMAND.json"
printf '%s' "$CNI_ARGS" > "$(dirname "$0")/args"
if [ "$CNI_COMMAND" = ADD ]; then
    if [ "$(grep -c ADD "$log")" -le 2 ]; then
        printf '{"code": 7, "msg": "not yet"}'
        exit 1
    fi
    printf '{"cniVersion": "0.4.0", "interfaces": [{"name": "eth0", "sandbox": "x"}], "ips": [{"version": "4", "address": "10.9.0.2/24", "interface": 0}]}'
fi
"#;

fn with_file(machine: &mut Machine, text: &str) {
    fs::create_dir_all(&machine.config.cni_config_dir).unwrap();
    fs::write(machine.config.cni_config_dir.join("10-lan.conflist"), text).unwrap();
}

#[test]
fn scenario_068_failed_tries_are_undone_before_the_next() {
    let Some(mut machine) = Machine::new() else {
        return;
    };
    let plugins = script(&machine, "flaky", FLAKY);
    machine
        .config
        .cni_path
        .insert(0, plugins.display().to_string());
    with_file(
        &mut machine,
        r#"{"name": "lan", "cniVersion": "0.4.0", "plugins": [
            {"type": "flaky", "capabilities": {"portMappings": true}}]}"#,
    );
    let networks = machine.networks();
    assert_eq!(networks.offer().modes["cni/lan"], None);
    let plan = plan(1, Mode::Cni("lan".to_owned()), &[(None, 8080, 80)]);
    let network = networks.set_up(&plan, &AGENT).unwrap();
    assert_eq!(network.status.address, "10.9.0.2");
    let log = || fs::read_to_string(plugins.join("log")).unwrap();
    assert_eq!(log(), "ADD\nDEL\nADD\nDEL\nADD\n");
    let input: serde_json::Value =
        serde_json::from_slice(&fs::read(plugins.join("ADD.json")).unwrap()).unwrap();
    assert_eq!(input["name"], "lan");
    assert_eq!(input["runtimeConfig"]["portMappings"][0]["hostPort"], 8080);
    assert_eq!(
        fs::read_to_string(plugins.join("args")).unwrap(),
        "IgnoreUnknown=true"
    );
    assert!(networks.find(&plan, &AGENT).is_some());
    remove(&networks, plan.alloc_id);
    assert!(log().ends_with("ADD\nCHECK\nDEL\n"), "{}", log());
    let input = fs::read_to_string(plugins.join("DEL.json")).unwrap();
    assert!(input.contains("prevResult"), "{input}");
}

#[test]
fn an_operators_network_without_portmap_gets_our_port_mappings() {
    let Some(mut machine) = Machine::new() else {
        return;
    };
    with_file(
        &mut machine,
        r#"{"name": "lan", "cniVersion": "0.4.0", "type": "ptp", "ipMasq": false,
            "ipam": {"type": "host-local", "subnet": "10.9.0.0/24", "routes": [{"dst": "0.0.0.0/0"}]}}"#,
    );
    machine.config.cni_path.push("/usr/lib/cni".to_owned());
    let networks = machine.networks();
    let plan = plan(1, Mode::Cni("lan".to_owned()), &[(None, 8080, 80)]);
    let network = networks.set_up(&plan, &AGENT).unwrap();
    serve(&network, 80, "lan");
    assert_eq!(call("10.7.0.1", 8080), Ok("lan".to_owned()));
    remove(&networks, plan.alloc_id);
    assert_eq!(machine.interfaces(), [""; 0]);
}

#[test]
fn networks_that_do_not_exist_are_named() {
    let Some(machine) = Machine::new() else {
        return;
    };
    let networks = machine.networks();
    let plan = plan(1, Mode::Cni("lan".to_owned()), &[]);
    let error = networks.set_up(&plan, &AGENT).unwrap_err().to_string();
    assert!(error.contains("there is no network \"lan\""), "{error}");
    assert_eq!(networks.all(), []);
    assert_eq!(machine.pins(), 0);
}
