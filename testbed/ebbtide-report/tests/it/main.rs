//! All integration tests of the crate in one program, which links once.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "in a test a panic is how it fails"
)]

mod campaign_pages;
mod report_browser;
mod report_page;
mod reports;
