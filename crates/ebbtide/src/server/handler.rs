//! Handlers: functions that answer requests and take a borrowed call, or parts of it.

use super::call::Call;
use super::extract::FromCall;
use super::into_response::IntoResponse;
use super::reply::Reply;
use std::future::Future;

/// A function that answers a request. The type parameter `M` distinguishes the forms and is
/// inferred; `S` is the state of the router.
///
/// * `Fn(&Call<'_>) -> R` answers at once and must not block. It copies nothing, and its response
///   is sent with the acknowledgement (piggybacked).
/// * `Fn(A, B, ..) -> R` takes up to six parts of the request ([`FromCall`]) and answers at once.
/// * `async fn(A, B, ..) -> R` may take its time: after
///   [`ServerConfig::acknowledge_after`](crate::ServerConfig::acknowledge_after) the request is
///   acknowledged, and answered later by a separate response (RFC 7252 section 5.2.2).
///
/// `R` is any type that converts to a response ([`IntoResponse`]).
///
/// ```
/// use ebbtide::server::{Call, Remote, Router, get, post};
///
/// async fn greet(Remote(address): Remote, name: String) -> String {
///     format!("hello {name} from {address}")
/// }
///
/// let router: Router = Router::new()
///     .route("/length", get(|call: &Call<'_>| call.payload().len().to_string()))
///     .route("/greeting", post(greet));
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a handler of a router with the state `{S}`",
    note = "a handler is a function, async or not, of at most six parts of a request, or of `&Call<'_>`; it returns something that becomes a response"
)]
pub trait Handler<M, S>: Send + Sync + 'static {
    /// Answers a request.
    fn call(&self, call: &Call<'_>, state: &S) -> Reply;
}

/// Marks functions of a borrowed call.
#[derive(Debug)]
pub struct ViaCall(());

/// Marks functions of parts that answer at once.
#[derive(Debug)]
pub struct ViaParts<T>(T);

/// Marks functions of parts that return a future.
#[derive(Debug)]
pub struct Async<T>(T);

impl<F, R, S> Handler<ViaCall, S> for F
where
    F: Fn(&Call<'_>) -> R + Send + Sync + 'static,
    R: IntoResponse,
{
    #[inline]
    fn call(&self, call: &Call<'_>, _: &S) -> Reply {
        Reply::now(self(call).into_response(call.accept()))
    }
}

macro_rules! handlers {
    ($(($($part:ident)*))*) => {$(
        impl<F, R, S, $($part,)*> Handler<ViaParts<($($part,)*)>, S> for F
        where
            F: Fn($($part),*) -> R + Send + Sync + 'static,
            R: IntoResponse,
            $($part: FromCall<S>,)*
        {
            #[allow(unused_variables, reason = "functions without arguments take nothing of the state")]
            fn call(&self, call: &Call<'_>, state: &S) -> Reply {
                let accept = call.accept();
                Reply::now(self($(
                    match $part::from_call(call, state) {
                        Ok(part) => part,
                        Err(rejection) => return Reply::now(rejection.into_response(accept)),
                    }
                ),*).into_response(accept))
            }
        }

        impl<F, O, R, S, $($part,)*> Handler<Async<($($part,)*)>, S> for F
        where
            F: Fn($($part),*) -> O + Send + Sync + 'static,
            O: Future<Output = R> + Send + 'static,
            R: IntoResponse,
            $($part: FromCall<S>,)*
        {
            #[allow(unused_variables, reason = "functions without arguments take nothing of the state")]
            fn call(&self, call: &Call<'_>, state: &S) -> Reply {
                let accept = call.accept();
                let answer = self($(
                    match $part::from_call(call, state) {
                        Ok(part) => part,
                        Err(rejection) => return Reply::now(rejection.into_response(accept)),
                    }
                ),*);
                Reply::later(async move { answer.await.into_response(accept) })
            }
        }
    )*};
}

handlers! {
    ()
    (A)
    (A B)
    (A B C)
    (A B C D)
    (A B C D E)
    (A B C D E G)
}
