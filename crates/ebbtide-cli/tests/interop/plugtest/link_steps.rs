//! TD_COAP_LINK.

use super::Tester;
use ebbtide::{Code, ContentFormat};

/// The links of a list, each with what it is said of it.
async fn links(tester: &Tester, path: &str) -> Vec<(String, String)> {
    let (response, _) = tester.get(path).await;
    assert_eq!(response.code(), Code::CONTENT, "{path}");
    assert_eq!(response.content_format(), Some(ContentFormat::LINK_FORMAT), "{path}");
    let text = response.text().into_owned();
    let link = |link: &str| {
        let (target, attributes) = link.strip_prefix('<')?.split_once('>')?;
        Some((target.to_owned(), attributes.to_owned()))
    };
    // No attribute of these servers contains a comma before a `<`.
    text.replace(",<", "\n<").lines().filter_map(link).collect()
}

/// TD_COAP_LINK_01 to 09.
pub(super) async fn all(tester: &Tester) {
    let core = "/.well-known/core";
    let found = links(tester, core).await;
    assert!(found.iter().any(|(target, _)| target == "/test"), "{found:?}");
    let filtered = async |filter: &str| {
        let found = links(tester, &format!("{core}?{filter}")).await;
        assert!(!found.is_empty(), "{filter}");
        found
    };
    let targets = |found: &[(String, String)]| -> Vec<String> {
        let mut targets: Vec<_> = found.iter().map(|(target, _)| target.clone()).collect();
        targets.sort();
        targets
    };
    assert_eq!(targets(&filtered("rt=Type1").await), ["/link1", "/link3"]);
    assert!(filtered("rt=*").await.iter().all(|(_, attributes)| attributes.contains(";rt=")));
    assert_eq!(targets(&filtered("rt=Type2").await), ["/link1", "/link2"]);
    assert_eq!(targets(&filtered("if=If*").await), ["/link1", "/link2"]);
    assert!(filtered("sz=*").await.iter().all(|(_, attributes)| attributes.contains(";sz=")));
    assert_eq!(targets(&filtered("href=/link1").await), ["/link1"]);
    assert_eq!(targets(&filtered("href=/link*").await), ["/link1", "/link2", "/link3"]);
    let hierarchy = filtered("ct=40").await;
    assert!(hierarchy.iter().any(|(target, _)| target == "/path"), "{hierarchy:?}");
    let below = links(tester, "/path").await;
    assert!(below.iter().any(|(target, _)| target == "/path/sub1"), "{below:?}");
    let (leaf, _) = tester.get("/path/sub1").await;
    assert_eq!((leaf.code(), leaf.body().is_empty()), (Code::CONTENT, false));
}
