//! Peers with programs of their own for these tests (`interop/README.md`), both ways.

use super::our_client::{EndedObservations, Manners, ask_everything, ask_lossy, count_repeated};
use super::our_server::serve;
use super::peers::{LOSING, Peer, REPEATING, ebbtide};
use ebbtide::Code;

macro_rules! both_ways {
    ($($module:ident $name:literal $manners:expr;)*) => {$(
        mod $module {
            use super::*;

            #[tokio::test]
            async fn its_client_gets_everything_from_our_server() {
                let Some(peer) = Peer::find($name) else { return };
                let ours = serve("127.0.0.1");
                peer.ask(ours.address, "all").await;
                let manners = $manners;
                match manners.ends {
                    EndedObservations::All => ours.unobserved().await,
                    EndedObservations::OfOneBlock => ours.time_unobserved().await,
                }
            }

            #[tokio::test]
            async fn our_client_gets_everything_from_its_server() {
                let Some(peer) = Peer::find($name) else { return };
                let (_server, address) = peer.serve("127.0.0.1");
                ask_everything(address, &$manners).await;
            }

            #[tokio::test]
            async fn our_discover_lists_its_resources_by_ipv6() {
                let Some(peer) = Peer::find($name) else { return };
                let (_server, address) = peer.serve("::1");
                let links = ebbtide(&["discover", &format!("coap://{address}")]).await;
                assert!(links.lines().any(|link| link.starts_with("</time>")), "{links}");
            }

            #[tokio::test]
            async fn its_client_reaches_our_server_by_ipv6() {
                let Some(peer) = Peer::find($name) else { return };
                peer.ask(serve("::1").address, "count").await;
            }

            #[tokio::test]
            async fn its_posts_are_processed_once_by_our_server_though_everything_comes_twice() {
                let Some(peer) = Peer::find($name) else { return };
                let ours = serve("127.0.0.1");
                peer.ask_through(REPEATING, ours.address, "count").await;
                assert!(ours.duplicates() >= 10, "{}", ours.duplicates());
            }

            #[tokio::test]
            async fn our_posts_are_processed_once_by_its_server_though_everything_comes_twice() {
                let Some(peer) = Peer::find($name) else { return };
                let (_server, address) = peer.serve("127.0.0.1");
                count_repeated(address).await;
            }

            #[tokio::test]
            async fn its_client_gets_its_answers_from_our_server_though_much_is_lost() {
                let Some(peer) = Peer::find($name) else { return };
                let ours = serve("127.0.0.1");
                peer.ask_through(LOSING, ours.address, "lossy").await;
            }

            #[tokio::test]
            async fn our_client_gets_its_answers_from_its_server_though_much_is_lost() {
                let Some(peer) = Peer::find($name) else { return };
                let (_server, address) = peer.serve("127.0.0.1");
                ask_lossy(address, &$manners).await;
            }
        }
    )*};
}

both_ways! {
    aiocoap "aiocoap" Manners {
        too_large: None,
        bad_option: Code::CONTENT,
        ends: EndedObservations::OfOneBlock,
        ..Manners::default()
    };
    californium "californium" Manners::default();
    go_coap "go-coap" Manners {
        uploads: false,
        too_large: None,
        bad_option: Code::CONTENT,
        // go-coap leaves that to its application.
        forgets_observers: false,
        ..Manners::default()
    };
}
