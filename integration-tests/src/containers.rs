//! Test of the images and of docker-compose.yml: the stack in containers, driven from outside.
//!
//! In reading order: [`command`] runs docker and the scripts, [`stack`] is one run of
//! docker-compose.yml with its [`secrets`], [`user`] works meanwhile, [`placement`] shows that the
//! suite works, [`examples`] runs the files of that directory, [`trial`] lists the steps.
//! [`monitoring`] checks the profile of that name, with a client of [`prometheus`], the [`expressions`]
//! of dashboards and alerts, and a [`stand_in`] that reads the [`collector_config`].
//! [`certificates`] lets some expire, [`host_agent`] replaces a node agent, [`full_etcd`] fills etcd,
//! [`restore`] loses its data, takes the stack down and checks the [`surviving_state`].
//! [`machine`] runs the Debian package under systemd, [`quick_start`] the commands of the README.
//! The binary `container-tests` is the entry point.

pub mod certificates;
pub mod collector_config;
pub mod command;
pub mod examples;
pub mod expressions;
pub mod full_etcd;
pub mod host_agent;
pub mod machine;
pub mod monitoring;
pub mod placement;
pub mod prometheus;
pub mod quick_start;
pub mod restore;
pub mod secrets;
pub mod stack;
pub mod stand_in;
pub mod surviving_state;
pub mod trial;
pub mod user;
