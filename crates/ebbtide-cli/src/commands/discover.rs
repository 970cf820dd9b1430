//! `ebbtide discover`: lists resources.

use crate::client::pretty::{harmless, links};
use crate::client::{GROUP_WAIT, TalkArgs, block_on};
use crate::failure::Failure;
use clap::Args;
use ebbtide::{Request, Uri};
use std::io::{self, Write as _};

/// List the resources of a host, or of all members of a group
#[derive(Args, Debug)]
pub(crate) struct DiscoverArgs {
    /// coap://HOST[:PORT], or a group such as coap://224.0.1.187 or coap://[ff02::fd%25eth0]
    uri: String,
    /// Only resources with this attribute, as in rt=temperature or href=/rooms*
    #[arg(short, long, value_name = "NAME=VALUE")]
    filter: Option<String>,
    #[command(flatten)]
    talk: TalkArgs,
}

/// Lists the resources.
///
/// # Errors
///
/// Returns an error if there is no answer.
pub(crate) fn run(args: DiscoverArgs) -> Result<(), Failure> {
    block_on(async {
        let uri: Uri = args.uri.parse()?;
        let mut text = args.uri.trim_end_matches('/').to_owned();
        if uri.path().next().is_none() {
            text.push_str("/.well-known/core");
        }
        if let Some(filter) = &args.filter {
            text.push('?');
            text.push_str(filter);
        }
        let mut request = Request::get(text)?;
        if args.talk.non {
            request = request.non_confirmable();
        }
        let client = args.talk.client(request.uri())?;
        let wait = args.talk.timeout.unwrap_or(GROUP_WAIT);
        let is_group = request.uri().address().is_some_and(|address| address.is_multicast());
        let answers = client.request_group(request, wait).await?;
        for (from, response) in &answers {
            if is_group || answers.len() > 1 {
                writeln!(io::stdout(), "{from}")?;
            }
            if !response.is_success() {
                let name = response.code().name().unwrap_or("unknown code");
                return Err(Failure::work(format_args!("{from}: {} {name}", response.code())));
            }
            for link in links(&response.text()) {
                writeln!(io::stdout(), "{}", harmless(&link))?;
            }
        }
        if answers.is_empty() {
            return Err(Failure::work(format_args!("{}: no answer", args.uri)));
        }
        Ok(())
    })
}
