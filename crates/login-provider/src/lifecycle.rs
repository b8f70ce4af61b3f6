//! The life of a task's token: logins, renewals, losses. Pure; times are since a start that the caller
//! chooses.

use std::time::Duration;

use backoff::delay_or_asked;

use crate::provider::{Cause, Grant};
use crate::schedule::{TokenStep, next_step};

/// The delay after the first failure.
pub(crate) const FIRST_DELAY: Duration = Duration::from_secs(1);
/// The longest delay between two tries while the task waits for its first token, or has one that ends.
const LONGEST_DELAY: Duration = Duration::from_secs(30);
/// The longest delay after a refused login of a task that runs: a role or policy is missing, and an operator
/// has to act.
const LONGEST_REFUSAL_DELAY: Duration = Duration::from_secs(300);
/// A token that is in doubt is tested at most this often.
const TEST_INTERVAL: Duration = Duration::from_secs(30);

/// Rules for a token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// Tokens are neither renewed nor replaced (`allow_token_expiration`).
    pub may_expire: bool,
    /// [`crate::LoginProvider::tests_tokens`].
    pub tests_tokens: bool,
}

/// The token's life.
#[derive(Clone, Debug)]
pub struct TokenLifecycle {
    phase: Phase,
    rules: Rules,
    /// A token was granted, and no login or renewal has failed since.
    is_alive: bool,
    /// The lifetime after the last login.
    first: Option<Duration>,
    /// When the token ends; `None`: never, or unknown.
    ends: Option<Duration>,
    /// Failures in a row.
    failures: u32,
    last_test: Option<Duration>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    LogInAt(Duration),
    RenewAt(Duration),
    Rest,
}

/// The next action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenAction {
    LogIn,
    Renew,
    /// Until this time; `None`: for ever.
    Wait(Option<Duration>),
}

impl TokenLifecycle {
    /// A life without a token: the login is due.
    pub fn new(rules: Rules) -> Self {
        Self {
            phase: Phase::LogInAt(Duration::ZERO),
            rules,
            is_alive: false,
            first: None,
            ends: None,
            failures: 0,
            last_test: None,
        }
    }

    /// A life with a token from an earlier run of the agent: its renewal is due, which tells its age.
    pub fn with_token(rules: Rules) -> Self {
        let phase = if rules.may_expire {
            Phase::Rest
        } else {
            Phase::RenewAt(Duration::ZERO)
        };
        Self {
            phase,
            ..Self::new(rules)
        }
    }

    pub fn action(&self, now: Duration) -> TokenAction {
        match self.phase {
            Phase::LogInAt(at) if at <= now => TokenAction::LogIn,
            Phase::RenewAt(at) if at <= now => TokenAction::Renew,
            Phase::LogInAt(at) | Phase::RenewAt(at) => TokenAction::Wait(Some(at)),
            Phase::Rest => TokenAction::Wait(None),
        }
    }

    /// A login gave a token. `jitter`: 0 to 1, as below.
    pub fn logged_in(&mut self, now: Duration, grant: &Grant, jitter: f64) {
        self.first = grant.lifetime;
        if self.rules.tests_tokens {
            // A fresh token is not known to every server yet.
            self.last_test = Some(now);
        }
        self.granted(now, grant, jitter);
    }

    /// The token lives longer.
    pub fn renewed(&mut self, now: Duration, grant: &Grant, jitter: f64) {
        // That of a restored token is unknown: its renewal takes its place.
        self.first = self.first.or(grant.lifetime);
        self.granted(now, grant, jitter);
    }

    fn granted(&mut self, now: Duration, grant: &Grant, jitter: f64) {
        self.failures = 0;
        self.is_alive = true;
        self.ends = grant.lifetime.map(|lifetime| now + lifetime);
        self.phase = match next_step(grant, self.first, jitter) {
            _ if self.rules.may_expire => Phase::Rest,
            TokenStep::Renew(after) => Phase::RenewAt(now + after),
            TokenStep::LogIn(after) => Phase::LogInAt(now + after),
            TokenStep::Keep => Phase::Rest,
        };
    }

    /// A login failed; `is_refused`: for a reason that does not pass by itself. It is retried.
    pub fn login_failed(
        &mut self,
        now: Duration,
        is_refused: bool,
        asked: Option<Duration>,
        jitter: f64,
    ) {
        self.failures = self.failures.saturating_add(1);
        self.is_alive = false;
        let longest = if is_refused {
            LONGEST_REFUSAL_DELAY
        } else {
            LONGEST_DELAY
        };
        let delay = delay_or_asked((FIRST_DELAY, longest), self.failures, asked, jitter);
        self.phase = Phase::LogInAt(now + delay);
    }

    /// A renewal failed. One that may succeed later is retried while the token lives; otherwise a login
    /// takes its place at once.
    pub fn renewal_failed(&mut self, now: Duration, cause: Cause, jitter: f64) {
        if !cause.is_transient() {
            self.failures = 0;
            self.is_alive = false;
            self.phase = Phase::LogInAt(now);
            return;
        }
        self.failures = self.failures.saturating_add(1);
        let asked = cause.retry_after();
        let next = now + delay_or_asked((FIRST_DELAY, LONGEST_DELAY), self.failures, asked, jitter);
        self.phase = match self.ends {
            Some(ends) if next >= ends => Phase::LogInAt(next),
            _ => Phase::RenewAt(next),
        };
    }

    /// The service has denied a request of the token: it may be revoked, so its renewal or test is due.
    pub fn request_test(&mut self, now: Duration) {
        let is_new = self
            .last_test
            .is_none_or(|last| now >= last + TEST_INTERVAL);
        let can_test = self.rules.tests_tokens && self.is_alive && !self.rules.may_expire;
        if is_new && (can_test || matches!(self.phase, Phase::RenewAt(_))) {
            self.last_test = Some(now);
            self.phase = Phase::RenewAt(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    const RULES: Rules = Rules {
        may_expire: false,
        tests_tokens: false,
    };
    const DOWN: Cause = Cause::Transient { retry_after: None };

    fn grant(lifetime: u64) -> Grant {
        Grant {
            lifetime: Some(s(lifetime)),
            is_renewable: true,
            ..Grant::default()
        }
    }

    fn alive() -> TokenLifecycle {
        let mut life = TokenLifecycle::new(RULES);
        assert_eq!(life.action(s(0)), TokenAction::LogIn);
        life.logged_in(s(0), &grant(3600), 0.0);
        life
    }

    #[test]
    fn a_token_is_renewed_while_it_lives() {
        let mut life = alive();
        assert_eq!(life.action(s(1)), TokenAction::Wait(Some(s(1800))));
        assert_eq!(life.action(s(1800)), TokenAction::Renew);
        life.renewed(s(1800), &grant(3600), 1.0);
        assert_eq!(
            life.action(s(1801)),
            TokenAction::Wait(Some(s(1800 + 2160)))
        );
    }

    #[test]
    fn the_last_renewals_of_a_token_make_way_for_a_login() {
        let mut life = alive();
        life.renewed(s(1800), &grant(1000), 0.0);
        assert_eq!(life.action(s(2300)), TokenAction::LogIn);
    }

    #[test]
    fn an_outage_is_waited_out_until_the_token_has_ended() {
        let mut life = alive();
        let mut now = s(1800);
        let mut tries = 0;
        while life.action(now) == TokenAction::Renew {
            life.renewal_failed(now, DOWN, 0.0);
            tries += 1;
            let TokenAction::Wait(Some(next)) = life.action(now) else {
                panic!("it gives up")
            };
            assert!(next - now <= s(30));
            now = next;
        }
        assert!(tries > 50, "{tries}");
        assert!(now >= s(3600), "{now:?}");
        assert_eq!(life.action(now), TokenAction::LogIn);
        life.login_failed(now, false, None, 0.0);
        assert_eq!(life.action(now + s(30)), TokenAction::LogIn);
    }

    #[test]
    fn a_lost_token_is_replaced_at_once() {
        let mut life = alive();
        life.renewal_failed(s(1800), Cause::Denied, 0.0);
        assert_eq!(life.action(s(1800)), TokenAction::LogIn);
    }

    #[test]
    fn a_refused_login_is_retried_rarely() {
        let mut life = TokenLifecycle::new(RULES);
        let mut now = s(0);
        for _ in 0..12 {
            life.login_failed(now, true, None, 0.0);
            let TokenAction::Wait(Some(next)) = life.action(now) else {
                panic!("it gives up")
            };
            assert!(next - now <= s(300));
            now = next;
        }
        assert!(now > s(1200), "{now:?}");
    }

    #[test]
    fn a_token_that_may_expire_is_left_alone() {
        let rules = Rules {
            may_expire: true,
            ..RULES
        };
        let mut life = TokenLifecycle::new(rules);
        life.logged_in(s(0), &grant(60), 0.0);
        assert_eq!(life.action(s(10_000)), TokenAction::Wait(None));
        assert_eq!(
            TokenLifecycle::with_token(rules).action(s(0)),
            TokenAction::Wait(None)
        );
    }

    #[test]
    fn a_restored_token_is_tested_first() {
        let mut life = TokenLifecycle::with_token(RULES);
        assert_eq!(life.action(s(0)), TokenAction::Renew);
        life.renewed(s(0), &grant(600), 0.0);
        assert_eq!(life.action(s(1)), TokenAction::Wait(Some(s(300))));
    }

    #[test]
    fn a_requested_test_is_a_renewal_at_most_once_in_the_interval() {
        let mut life = alive();
        life.request_test(s(100));
        assert_eq!(life.action(s(100)), TokenAction::Renew);
        life.renewed(s(100), &grant(3600), 0.0);
        life.request_test(s(129));
        assert_eq!(life.action(s(129)), TokenAction::Wait(Some(s(1900))));
        life.request_test(s(130));
        assert_eq!(life.action(s(130)), TokenAction::Renew);
        let mut waiting = TokenLifecycle::new(RULES);
        waiting.login_failed(s(0), false, None, 0.0);
        waiting.request_test(s(0));
        assert_eq!(waiting.action(s(0)), TokenAction::Wait(Some(s(1))));
    }

    #[test]
    fn a_token_that_cannot_be_renewed_is_tested_in_doubt_if_the_provider_can() {
        let forever = Grant {
            lifetime: None,
            is_renewable: false,
            ..Grant::default()
        };
        let short = Grant {
            lifetime: Some(s(3600)),
            ..forever.clone()
        };
        let rules = Rules {
            tests_tokens: true,
            ..RULES
        };
        for (granted, waits) in [(&forever, None), (&short, Some(s(1800)))] {
            let mut life = TokenLifecycle::new(rules);
            life.logged_in(s(0), granted, 0.0);
            life.request_test(s(29));
            assert_eq!(life.action(s(29)), TokenAction::Wait(waits), "too fresh");
            life.request_test(s(30));
            assert_eq!(life.action(s(30)), TokenAction::Renew);
            life.renewed(s(30), granted, 0.0);
            assert!(matches!(life.action(s(31)), TokenAction::Wait(_)));
            let mut other = TokenLifecycle::new(RULES);
            other.logged_in(s(0), granted, 0.0);
            other.request_test(s(30));
            assert_eq!(other.action(s(30)), TokenAction::Wait(waits));
        }
    }
}
