//! RPCs as values, and whether their requests may be sent again.

use std::fmt;
use std::marker::PhantomData;

/// The rule for repeating a request without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// Reads, writes with a request id, and writes that set a state.
    Safe,
    /// Everything else: the first attempt may have taken effect.
    Once,
}

impl Repeat {
    pub(crate) fn safe_if(is_safe: bool) -> Self {
        if is_safe { Self::Safe } else { Self::Once }
    }
}

/// An RPC with its request and its answer.
pub(crate) struct Method<Q, A> {
    /// As on the wire: `/kafila.v1.Jobs/Get`.
    pub(crate) path: &'static str,
    pub(crate) repeat: fn(&Q) -> Repeat,
    /// Completes a request before the first attempt.
    pub(crate) prepare: fn(&mut Q),
    answer: PhantomData<fn() -> A>,
}

impl<Q, A> Method<Q, A> {
    pub(crate) const fn new(
        path: &'static str,
        repeat: fn(&Q) -> Repeat,
        prepare: fn(&mut Q),
    ) -> Self {
        Self {
            path,
            repeat,
            prepare,
            answer: PhantomData,
        }
    }
}

// Derived ones would need `Q` and `A` to be `Copy`.
impl<Q, A> Clone for Method<Q, A> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<Q, A> Copy for Method<Q, A> {}

impl<Q, A> fmt::Debug for Method<Q, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.path)
    }
}

/// Sets a request id that the caller has not set.
pub(crate) fn fill_in(request_id: &mut String) {
    if request_id.is_empty() {
        *request_id = uuid::Builder::from_random_bytes(rand::random())
            .into_uuid()
            .to_string();
    }
}
