//! Test of the images and of docker-compose.yml: the stack in containers, driven from outside.
//!
//! In reading order: [`command`] runs docker and the scripts, [`stack`] is one run of
//! docker-compose.yml with its [`secrets`], [`user`] works meanwhile, [`placement`] shows that the
//! suite works, [`trial`] lists the steps.
//! [`certificates`] lets some expire, [`host_agent`] replaces a node agent, [`full_etcd`] fills etcd,
//! [`dashboards`] checks that dashboards name existing metrics. The binary `container-tests` is the
//! entry point.

pub mod certificates;
pub mod command;
pub mod dashboards;
pub mod full_etcd;
pub mod host_agent;
pub mod placement;
pub mod secrets;
pub mod stack;
pub mod trial;
pub mod user;
