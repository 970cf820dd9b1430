//! `ebbtide ping`: whether a CoAP endpoint is reachable, and its round trip.

use crate::client::{TalkArgs, block_on, seconds};
use crate::failure::Failure;
use clap::Args;
use ebbtide::Uri;
use std::io::{self, Write as _};
use std::time::Duration;

/// Send CoAP pings to an endpoint and measure the round trip
#[derive(Args, Debug)]
pub(crate) struct PingArgs {
    /// coap://HOST[:PORT]
    uri: String,
    /// Number of pings
    #[arg(short, long, default_value_t = 4, value_name = "N")]
    count: u32,
    /// Seconds between two pings
    #[arg(short, long, default_value = "1", value_name = "SECONDS", value_parser = seconds)]
    interval: Duration,
    #[command(flatten)]
    talk: TalkArgs,
}

/// Pings.
///
/// # Errors
///
/// Returns an error if the last ping is not answered.
pub(crate) fn run(args: PingArgs) -> Result<(), Failure> {
    block_on(async {
        let uri: Uri = args.uri.parse()?;
        let client = args.talk.client(&uri)?;
        let remote = client.resolve(&uri).await?;
        for number in 0..args.count {
            if number > 0 {
                tokio::time::sleep(args.interval).await;
            }
            let answered = client.ping(uri.clone());
            let learnt = match args.talk.timeout {
                None => answered.await?,
                Some(span) => tokio::time::timeout(span, answered).await.map_err(|_| {
                    let text = format_args!("no answer from {remote} within the time given");
                    Failure::work(text)
                })??,
            };
            match learnt {
                Some(sample) => writeln!(
                    io::stdout(),
                    "{remote}: {:.3} ms, {} sent",
                    sample.since_first.as_micros() as f64 / 1000.0,
                    sample.transmissions
                ),
                None => writeln!(io::stdout(), "{remote}: alive"),
            }?;
        }
        Ok(())
    })
}
