//! Client of Prometheus' HTTP API.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// A running Prometheus.
#[derive(Debug)]
pub struct Prometheus {
    pub address: String,
}

/// A scraped address.
#[derive(Debug)]
pub struct Target {
    pub job: String,
    /// The label `service`, empty if it has none.
    pub service: String,
    pub is_up: bool,
    pub error: String,
}

/// A loaded rule.
#[derive(Debug)]
pub struct Rule {
    pub name: String,
    pub expression: String,
    /// `ok` after its first evaluation.
    pub health: String,
}

/// The labels of a series, with its name if it has one.
pub type Labels = BTreeMap<String, String>;

impl Prometheus {
    /// Evaluates an expression now.
    ///
    /// # Errors
    /// Prometheus refuses the expression.
    pub async fn query(&self, expression: &str) -> Result<Vec<Labels>> {
        let path = format!(
            "query?query={}",
            utf8_percent_encode(expression, NON_ALPHANUMERIC)
        );
        let data = self.get(&path).await?;
        let series = array(&data, "/result")?.iter();
        let labels = series.map(|series| Ok(serde_json::from_value(series["metric"].clone())?));
        labels.collect()
    }

    /// Returns every target.
    ///
    /// # Errors
    /// No answer.
    pub async fn targets(&self) -> Result<Vec<Target>> {
        let data = self.get("targets?state=active").await?;
        let targets = array(&data, "/activeTargets")?.iter();
        Ok(targets
            .map(|target| Target {
                job: text(target, "/labels/job"),
                service: text(target, "/labels/service"),
                is_up: text(target, "/health") == "up",
                error: text(target, "/lastError"),
            })
            .collect())
    }

    /// Returns every loaded rule.
    ///
    /// # Errors
    /// No answer.
    pub async fn rules(&self) -> Result<Vec<Rule>> {
        let data = self.get("rules").await?;
        let mut rules = Vec::new();
        for group in array(&data, "/groups")? {
            rules.extend(array(group, "/rules")?.iter().map(|rule| Rule {
                name: text(rule, "/name"),
                expression: text(rule, "/query"),
                health: text(rule, "/health"),
            }));
        }
        Ok(rules)
    }

    async fn get(&self, path: &str) -> Result<Value> {
        let mut stream = TcpStream::connect(&self.address).await?;
        let request = format!("GET /api/v1/{path} HTTP/1.0\r\nHost: prometheus\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        let body = answer.split_once("\r\n\r\n").map(|(_, body)| body);
        let mut body: Value = serde_json::from_str(body.context("half an answer")?)?;
        ensure!(body["status"] == "success", "{}", body["error"]);
        Ok(body["data"].take())
    }
}

fn array<'a>(value: &'a Value, pointer: &str) -> Result<&'a Vec<Value>> {
    let found = value.pointer(pointer).and_then(Value::as_array);
    found.with_context(|| format!("no list {pointer} in {value}"))
}

fn text(value: &Value, pointer: &str) -> String {
    let found = value.pointer(pointer).and_then(Value::as_str);
    found.unwrap_or_default().to_owned()
}
