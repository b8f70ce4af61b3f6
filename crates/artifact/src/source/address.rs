//! The URL of a source.

use url::Url;

use super::problem::Problem;
use super::query::Query;

/// Parses a URL; the query's rest is part of it.
pub(super) fn url_of(text: &str, query: Option<&Query>) -> Result<Url, Problem> {
    let mut url = Url::parse(text).map_err(|error| Problem::Url(error.to_string()))?;
    if url.scheme() != "file" && url.host_str().unwrap_or_default().is_empty() {
        return Err(Problem::Url("it has no host".to_owned()));
    }
    url.set_fragment(None);
    url.set_query(query.and_then(Query::rest).as_deref());
    Ok(url)
}
