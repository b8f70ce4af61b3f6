//! Failures of a node's calls to gateways: the cause of each, and what the node does about it.
//!
//! The loop translates gRPC codes (`services/client-node/src/session/failure.rs`).

/// The cause of a failed call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallFailure {
    /// The gateway cannot be reached, is overloaded, or is of another version: another one may answer
    /// otherwise.
    Gateway,
    /// The request is invalid, for every gateway.
    Invalid,
    /// The servers deny the request: the node's secret, or a token.
    Denied,
    /// The servers do not know the node.
    Unknown,
    /// The servers are not set up for the request, or the node is not.
    Precondition,
    /// None of these.
    Other,
}

/// The next step of a node with reports that were not acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unacknowledged {
    /// It sends each report of the batch by itself, so that the refused one does not block the others.
    Split,
    /// It never sends the report again.
    Drop,
    /// It sends the same reports again, after a pause.
    GiveBack,
}

impl CallFailure {
    /// Returns whether another gateway may answer otherwise.
    pub fn is_of_gateway(self) -> bool {
        self == Self::Gateway
    }

    /// Returns whether the request stays invalid until an operator changes a setting or a version.
    pub fn is_invalid(self) -> bool {
        self == Self::Invalid
    }

    /// Returns whether the node has to register again.
    pub fn needs_registration(self) -> bool {
        matches!(self, Self::Unknown | Self::Denied)
    }

    /// Returns whether every gateway would refuse an introduction, so that retries do not help. A gateway
    /// without a CA of nodes is none of them: another one may have it.
    pub fn ends_introduction(self) -> bool {
        matches!(self, Self::Denied | Self::Invalid)
    }

    /// Returns whether the servers refuse identity tokens for good. A node that they do not know is
    /// registered soon.
    pub fn refuses_tokens(self) -> bool {
        matches!(self, Self::Denied | Self::Invalid | Self::Precondition)
    }

    /// Returns what happens to a batch of reports.
    pub fn of_batch(self) -> Unacknowledged {
        match self {
            Self::Invalid | Self::Denied => Unacknowledged::Split,
            _ => Unacknowledged::GiveBack,
        }
    }

    /// Returns what happens to a report that was sent by itself. A denied one comes again once the node
    /// has registered.
    pub fn of_report(self) -> Unacknowledged {
        match self {
            Self::Invalid => Unacknowledged::Drop,
            _ => Unacknowledged::GiveBack,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::CallFailure::*;
    use super::Unacknowledged::{Drop, GiveBack, Split};

    #[test]
    fn each_cause_has_one_consequence_for_each_call() {
        for (failure, [gateway, invalid, register, introduction, tokens], batch, report) in [
            (
                Gateway,
                [true, false, false, false, false],
                GiveBack,
                GiveBack,
            ),
            (Invalid, [false, true, false, true, true], Split, Drop),
            (Denied, [false, false, true, true, true], Split, GiveBack),
            (
                Unknown,
                [false, false, true, false, false],
                GiveBack,
                GiveBack,
            ),
            (
                Precondition,
                [false, false, false, false, true],
                GiveBack,
                GiveBack,
            ),
            (
                Other,
                [false, false, false, false, false],
                GiveBack,
                GiveBack,
            ),
        ] {
            let found = [
                failure.is_of_gateway(),
                failure.is_invalid(),
                failure.needs_registration(),
                failure.ends_introduction(),
                failure.refuses_tokens(),
            ];
            let expected = [gateway, invalid, register, introduction, tokens];
            assert_eq!(found, expected, "{failure:?}");
            let found = (failure.of_batch(), failure.of_report());
            assert_eq!(found, (batch, report), "{failure:?}");
        }
    }
}
