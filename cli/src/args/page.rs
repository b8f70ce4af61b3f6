//! Paging flags of every list.

use clap::Args;

use super::values::whole;

#[derive(Clone, Debug, Default, Args)]
pub struct Page {
    /// Return at most N results
    #[arg(long, value_name = "N", value_parser = whole::<u32>)]
    pub per_page: Option<u32>,
    /// Continue after a page; the command that printed it shows the token
    #[arg(long, value_name = "TOKEN")]
    pub page_token: Option<String>,
}
