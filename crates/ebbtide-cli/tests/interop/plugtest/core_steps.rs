//! TD_COAP_CORE and TD_COAP_BLOCK. The steps that only a client without tokens can take
//! (TD_COAP_CORE_12) are not among them: ours always has one.

use super::{Seen, Tester, piggybacked};
use ebbtide::{Code, ContentFormat, OptionNumber, Response};
use ebbtide_core::wire::{Block, Type};

const XML: ContentFormat = ContentFormat(41);

pub(super) async fn all(tester: &Tester) {
    methods(tester).await;
    separate(tester).await;
    options(tester).await;
    formats(tester).await;
    validation(tester).await;
    creation(tester).await;
    // TD_COAP_CORE_31: a ping has four bytes, as its Reset has.
    tester.seen();
    tester.client.ping(&tester.base).await.unwrap();
    let seen = tester.seen();
    // Late answers to the request before have another message ID.
    let is_ping = |seen: &&Seen| seen.sent && seen.kind == Type::Confirmable;
    let id = seen.iter().find(is_ping).expect("a ping").id;
    let own = || seen.iter().filter(|seen| seen.id == id);
    assert!(own().all(|seen| seen.len() == 4 && seen.code == Code::EMPTY), "{seen:?}");
    let reset = own().find(|seen| !seen.sent).unwrap();
    assert_eq!(reset.kind, Type::Reset);
}

/// TD_COAP_CORE_01 to 08, and 10: the methods, Confirmable and not.
async fn methods(tester: &Tester) {
    let results: [(Code, &[Code]); 4] = [
        (Code::GET, &[Code::CONTENT]),
        (Code::DELETE, &[Code::DELETED]),
        (Code::PUT, &[Code::CREATED, Code::CHANGED]),
        (Code::POST, &[Code::CREATED, Code::CHANGED]),
    ];
    for (method, expected) in results {
        let request = || {
            let request = tester.request(method, "/test");
            let has_body = method == Code::PUT || method == Code::POST;
            if has_body {
                request.payload("TD_COAP_CORE").format(ContentFormat::TEXT)
            } else {
                request
            }
        };
        let (response, seen) = tester.ask(request()).await;
        assert!(expected.contains(&response.code()), "{method}: {response:?}");
        piggybacked(&seen, method, response.code());
        if method == Code::GET {
            assert!(!response.body().is_empty() && response.content_format().is_some());
        }
        // A Non-confirmable message that is lost stays so.
        if tester.lossy {
            continue;
        }
        let (response, seen) = tester.ask(request().non_confirmable()).await;
        assert!(expected.contains(&response.code()), "{method}: {response:?}");
        not_confirmable(&seen);
    }
}

/// A Non-confirmable request, and its response as one. Copies of the request before may be answered as
/// well meanwhile.
fn not_confirmable(seen: &[Seen]) {
    let asked = seen.iter().find(|seen| seen.sent && seen.code.is_request()).unwrap().token;
    let own = seen.iter().filter(|seen| seen.token == asked);
    let kinds: Vec<_> = own.map(|seen| (seen.sent, seen.kind)).collect();
    assert_eq!(kinds, [(true, Type::NonConfirmable), (false, Type::NonConfirmable)], "{seen:?}");
}

/// TD_COAP_CORE_09, 11, 16 and 17.
async fn separate(tester: &Tester) {
    let (response, mut seen) = tester.get("/separate").await;
    assert_eq!(response.code(), Code::CONTENT);
    assert!(!response.body().is_empty() && response.content_format().is_some());
    let answer = seen.iter().find(|seen| !seen.sent && seen.code == Code::CONTENT).unwrap().clone();
    assert_eq!(answer.kind, Type::Confirmable, "{seen:?}");
    assert!(seen.iter().any(|seen| seen.sent && seen.token == answer.token), "{seen:?}");
    // The acknowledgement may leave after the caller has its response.
    let acknowledges = |seen: &Seen| {
        seen.sent && (seen.kind, seen.id) == (Type::Acknowledgement, answer.id) && seen.len() == 4
    };
    while !seen.iter().any(acknowledges) {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        seen.extend(tester.seen());
    }
    if tester.lossy {
        return;
    }
    let empty = seen.iter().find(|seen| !seen.sent).unwrap();
    assert_eq!(
        (empty.kind, empty.code, empty.id),
        (Type::Acknowledgement, Code::EMPTY, seen[0].id)
    );
    let (response, seen) =
        tester.ask(tester.request(Code::GET, "/separate").non_confirmable()).await;
    assert_eq!(response.code(), Code::CONTENT);
    not_confirmable(&seen);
}

fn values(seen: &Seen, number: OptionNumber) -> Vec<String> {
    let message = seen.message();
    let options = message.options().filter(|option| option.number == number);
    options.map(|option| String::from_utf8(option.value.to_vec()).unwrap()).collect()
}

fn locations(response: &Response, number: OptionNumber) -> Vec<String> {
    let options = response.options().iter().filter(|option| option.number == number);
    options.map(|option| String::from_utf8(option.value.to_vec()).unwrap()).collect()
}

/// TD_COAP_CORE_13, 14, 18 and 19: several options of one number.
async fn options(tester: &Tester) {
    let (response, seen) = tester.get("/seg1/seg2/seg3").await;
    assert_eq!(response.code(), Code::CONTENT);
    assert_eq!(values(&seen[0], OptionNumber::URI_PATH), ["seg1", "seg2", "seg3"]);
    let (response, seen) = tester.get("/query?first=1&second=2&third=3").await;
    assert_eq!(response.code(), Code::CONTENT);
    assert!(!response.body().is_empty());
    assert_eq!(values(&seen[0], OptionNumber::URI_QUERY), ["first=1", "second=2", "third=3"]);
    let post =
        |path| tester.request(Code::POST, path).payload("TD_COAP").format(ContentFormat::TEXT);
    let (response, _) = tester.ask(post("/test")).await;
    assert_eq!(response.code(), Code::CREATED);
    let path = locations(&response, OptionNumber::LOCATION_PATH);
    assert_eq!(path, ["location1", "location2", "location3"]);
    let (response, _) = tester.ask(post("/location-query")).await;
    assert_eq!(response.code(), Code::CREATED);
    assert_eq!(locations(&response, OptionNumber::LOCATION_QUERY), ["first=1", "second=2"]);
}

/// TD_COAP_CORE_20.
async fn formats(tester: &Tester) {
    let mut contents = Vec::new();
    for format in [ContentFormat::TEXT, XML] {
        let request = tester.request(Code::GET, "/multi-format").accept(format);
        let (response, _) = tester.ask(request).await;
        assert_eq!((response.code(), response.content_format()), (Code::CONTENT, Some(format)));
        contents.push(response.body().clone());
    }
    assert_ne!(contents[0], contents[1]);
}

fn etag(response: &Response) -> Vec<u8> {
    let mut options = response.options().iter();
    options.find(|option| option.number == OptionNumber::ETAG).expect("an ETag").value.to_vec()
}

/// TD_COAP_CORE_21 and 22.
async fn validation(tester: &Tester) {
    let get = || tester.request(Code::GET, "/validate");
    let (first, _) = tester.ask(get()).await;
    assert_eq!(first.code(), Code::CONTENT);
    let known = etag(&first);
    let put = |body: &str, expected: &[u8]| {
        let put = tester.request(Code::PUT, "/validate").payload(body.to_owned());
        put.format(ContentFormat::TEXT).option(OptionNumber::IF_MATCH, expected)
    };
    let (valid, _) = tester.ask(get().option(OptionNumber::ETAG, &known)).await;
    assert_eq!((valid.code(), valid.body().len()), (Code::VALID, 0));
    assert_eq!(etag(&valid), known);
    // Somebody else changes it. Some plugtest servers have changed it by themselves.
    let (current, _) = tester.ask(get()).await;
    let (changed, _) = tester.ask(put("another", &etag(&current))).await;
    assert_eq!(changed.code(), Code::CHANGED);
    let (new, _) = tester.ask(get().option(OptionNumber::ETAG, &known)).await;
    assert_eq!((new.code(), new.text().as_ref()), (Code::CONTENT, "another"));
    let new = etag(&new);
    assert_ne!(new, known);
    let (refused, _) = tester.ask(put("too late", b"\x99\x98")).await;
    assert_eq!(refused.code(), Code::PRECONDITION_FAILED);
}

/// TD_COAP_CORE_23.
async fn creation(tester: &Tester) {
    let put = || {
        let put = tester.request(Code::PUT, "/create1").payload("made").format(ContentFormat::TEXT);
        put.option(OptionNumber::IF_NONE_MATCH, b"")
    };
    tester.ask(tester.request(Code::DELETE, "/create1")).await;
    let (created, _) = tester.ask(put()).await;
    assert_eq!(created.code(), Code::CREATED);
    let (refused, _) = tester.ask(put()).await;
    assert_eq!(refused.code(), Code::PRECONDITION_FAILED);
}

/// The blocks of one option that passed in one direction, each once. What answers the request before is
/// left out.
fn numbers(seen: &[Seen], sent: bool, option: OptionNumber) -> Vec<Block> {
    let mut blocks = Vec::new();
    let own =
        |one: &&Seen| one.sent == sent && seen.iter().any(|each| each.sent && each.id == one.id);
    for seen in seen.iter().filter(own) {
        let message = seen.message();
        let block = message.option(option).map(|option| Block::from_option(&option).unwrap());
        blocks.extend(block.filter(|block| !blocks.contains(block)));
    }
    blocks
}

/// Blocks follow each other without a gap, and only the last one has no successor.
fn in_order(blocks: &[Block]) {
    let (last, before) = blocks.split_last().expect("blocks");
    assert!(!last.more() && before.iter().all(|block| block.more()), "{blocks:?}");
    let mut end = 0;
    for block in blocks {
        assert_eq!(block.num() as usize * block.size(), end, "{blocks:?}");
        end += block.size();
    }
}

/// TD_COAP_BLOCK_01 to 06.
pub(super) async fn blocks(tester: &Tester) {
    let (late, seen) = tester.get("/large").await;
    assert_eq!((late.code(), late.body().len() > 1024), (Code::CONTENT, true));
    in_order(&numbers(&seen, false, OptionNumber::BLOCK2));
    for size in [64, 16] {
        let (early, seen) = tester.ask(tester.request(Code::GET, "/large").block_size(size)).await;
        assert_eq!(early.body(), late.body());
        let asked = numbers(&seen[..1], true, OptionNumber::BLOCK2);
        assert_eq!((asked[0].num(), asked[0].more(), asked[0].size()), (0, false, size));
        let blocks = numbers(&seen, false, OptionNumber::BLOCK2);
        in_order(&blocks);
        assert!(blocks.iter().all(|block| block.size() <= size), "{blocks:?}");
    }
    let body = "a line of 32 bytes of an upload\n".repeat(40);
    let upload = |method, path| {
        tester
            .request(method, path)
            .payload(body.clone())
            .format(ContentFormat::TEXT)
            .block_size(64)
    };
    let (changed, seen) = tester.ask(upload(Code::PUT, "/large-update")).await;
    assert_eq!(changed.code(), Code::CHANGED);
    in_order(&numbers(&seen, true, OptionNumber::BLOCK1));
    let (updated, _) = tester.get("/large-update").await;
    assert_eq!(updated.text(), body);
    let (created, seen) = tester.ask(upload(Code::POST, "/large-create")).await;
    assert_eq!(created.code(), Code::CREATED);
    in_order(&numbers(&seen, true, OptionNumber::BLOCK1));
    let path = locations(&created, OptionNumber::LOCATION_PATH);
    let (stored, _) = tester.get(&format!("/{}", path.join("/"))).await;
    assert_eq!(stored.text(), body);
    let (both, seen) = tester.ask(upload(Code::POST, "/large-post")).await;
    assert_eq!((both.code(), both.text().to_lowercase()), (Code::CHANGED, body.clone()));
    in_order(&numbers(&seen, true, OptionNumber::BLOCK1));
    in_order(&numbers(&seen, false, OptionNumber::BLOCK2));
}
