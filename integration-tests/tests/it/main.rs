//! Black-box tests of the suite, in one binary, because linking is slow.
//!
//! `e2e_*` use the product as its users do; `e2e_abrupt_kills` kills services meanwhile, and its name makes this
//! longest test begin first of them; `stack_files` reads files, and `stack_scripts` runs scripts with a
//! stand-in for Docker. All but `e2e_dev`, `e2e_exec`, `e2e_gc`, `e2e_introduction`, `e2e_job_operations`,
//! `e2e_plan`, `e2e_durations`, `e2e_volumes`, `stack_files` and `stack_scripts` need etcd ≥ 3.5.8 (`etcd` on
//! the PATH, or `KAFILA_ETCD`); without it they print a notice, and fail only when `KAFILA_REQUIRE_ETCD` is
//! set.

mod budget;
mod e2e_abrupt_kills;
mod e2e_address;
mod e2e_agent_restart;
mod e2e_alloc_commands;
mod e2e_consul;
mod e2e_csi;
mod e2e_dev;
mod e2e_devices;
mod e2e_dial_out;
mod e2e_drain;
mod e2e_durations;
mod e2e_environment;
mod e2e_etcd_user;
mod e2e_examples;
mod e2e_exec;
mod e2e_faults;
mod e2e_gc;
mod e2e_identities;
mod e2e_introduction;
mod e2e_job_operations;
mod e2e_operator;
mod e2e_plan;
mod e2e_plugins;
mod e2e_preemption;
mod e2e_rollout;
mod e2e_sdk;
mod e2e_services;
mod e2e_tls;
mod e2e_trace;
mod e2e_variables;
mod e2e_vault;
mod e2e_volumes;
mod stack_files;
mod stack_scripts;
