//! Commands of scripts about scores.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use model::{Affinity, JobKey, NodeId, Operator, ScoreParts, Spread, SpreadTarget};
use model::{Algorithm, PoolConfiguration, Preemption};

use crate::cluster::TestCluster;
use crate::report::ranges;

pub(crate) fn configure(cluster: &mut TestCluster, choices: &[(&str, &str)]) {
    for (key, value) in choices {
        if *key == "preempts" {
            let named = |job_type: &str| value.split(',').any(|word| word == job_type);
            cluster.config.preemption = Preemption {
                system: named("system"),
                sysbatch: named("sysbatch"),
                batch: named("batch"),
                service: named("service"),
            };
            continue;
        }
        let algorithm = match *value {
            "binpack" => Algorithm::Binpack,
            "spread" => Algorithm::Spread,
            _ => panic!("no such algorithm: {value}"),
        };
        match key.strip_prefix("pool.") {
            Some(pool) => {
                let config = PoolConfiguration {
                    algorithm: Some(algorithm),
                    ..PoolConfiguration::default()
                };
                cluster.config.pools.insert(pool.into(), config);
            }
            None => cluster.config.algorithm = algorithm,
        }
    }
    cluster.store_config();
}

/// Reads `LEFT/OPERATOR/RIGHT/WEIGHT`.
pub(crate) fn affinity(text: &str) -> Affinity {
    let parts: Vec<_> = text.splitn(4, '/').collect();
    Affinity {
        left: parts[0].into(),
        operator: Operator::parse(parts[1]).unwrap(),
        right: parts[2].into(),
        weight: parts[3].parse().unwrap(),
    }
}

/// Reads `ATTRIBUTE/WEIGHT` or `ATTRIBUTE/WEIGHT/VALUE:PERCENT,VALUE:PERCENT…`.
pub(crate) fn spread(text: &str) -> Spread {
    let parts: Vec<_> = text.splitn(3, '/').collect();
    let targets = parts.get(2).into_iter().flat_map(|list| list.split(','));
    let target = |text: &str| {
        let (value, percent) = text.split_once(':').unwrap();
        SpreadTarget {
            value: value.into(),
            percent: percent.parse().unwrap(),
        }
    };
    Spread {
        attribute: parts[0].into(),
        weight: parts[1].parse().unwrap(),
        targets: targets.map(target).collect(),
    }
}

/// Lists the scores of the nodes of the newest allocations, and of the runners-up.
pub(crate) fn scores(cluster: &TestCluster, key: &JobKey) -> String {
    let snapshot = cluster.snapshot();
    let name = |id: NodeId| snapshot.node(id).unwrap().value.name.clone();
    let views = cluster.allocs(key);
    let newest = views
        .iter()
        .map(|view| view.create_index)
        .max()
        .unwrap_or(0);
    let mut lines = BTreeMap::<String, Vec<u32>>::new();
    let mut others = String::new();
    for view in views.iter().filter(|view| view.create_index == newest) {
        let metric = view.alloc.metric.as_ref().unwrap().read();
        let said = describe(&metric.score_parts.unwrap());
        let node = name(view.alloc.node_id);
        let mean = f64::from(metric.score_per_mille) / 1_000.0;
        let line = format!(
            "of {} nodes {node} for {{}}:{said} = {mean}",
            metric.nodes_evaluated
        );
        lines.entry(line).or_default().push(view.alloc.name_index);
        for (dimension, nodes) in &metric.dimension_exhausted {
            let line = format!("  {{}} found too little {dimension} on {nodes}");
            lines.entry(line).or_default().push(view.alloc.name_index);
        }
        let mut runners_up: Vec<_> = metric.runners_up.iter().collect();
        runners_up.sort_by_key(|score| (-score.per_mille, name(score.node_id)));
        for score in runners_up {
            let (node, said) = (name(score.node_id), describe(&score.parts));
            let mean = f64::from(score.per_mille) / 1_000.0;
            writeln!(others, "  not {node}:{said} = {mean}").unwrap();
        }
    }
    let mut text = String::new();
    for (line, numbers) in lines {
        writeln!(
            text,
            "{}",
            line.replace("{}", &format!("[{}]", ranges(numbers)))
        )
        .unwrap();
    }
    text + &others
}

fn describe(parts: &ScoreParts) -> String {
    let mut text = String::new();
    for (scorer, said) in parts.named() {
        write!(text, " {scorer} {}", f64::from(said) / 1_000.0).unwrap();
    }
    text
}
