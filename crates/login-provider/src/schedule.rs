//! Times at which tokens are renewed or replaced.

use std::time::Duration;

use crate::provider::Grant;

/// No renewal comes sooner: a lifetime of a second would keep a core busy.
const SHORTEST: Duration = Duration::from_secs(1);

/// The next step for a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenStep {
    /// Renew it after this time.
    Renew(Duration),
    /// It can't be renewed, or not for long: log in again after this time.
    LogIn(Duration),
    /// Nothing: it does not end.
    Keep,
}

/// The next step for a token with the lifetime that has just been granted. `first`: the lifetime after the
/// login. `jitter`: 0 to 1.
///
/// Half of the lifetime passes, plus up to a tenth of it: the other half is left for retries. Near the
/// token's maximal lifetime Vault grants ever shorter renewals; below a third of the first lifetime, a new
/// login takes their place.
pub fn next_step(grant: &Grant, first: Option<Duration>, jitter: f64) -> TokenStep {
    let Some(lifetime) = grant.lifetime else {
        return TokenStep::Keep;
    };
    let after = fraction(lifetime, 0.5 + 0.1 * jitter.clamp(0.0, 1.0));
    let is_near_its_end = first.is_some_and(|first| lifetime < first / 3);
    if grant.is_renewable && !is_near_its_end {
        TokenStep::Renew(after)
    } else {
        TokenStep::LogIn(after)
    }
}

fn fraction(of: Duration, share: f64) -> Duration {
    of.mul_f64(share).max(SHORTEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    fn grant(seconds: u64, is_renewable: bool) -> Grant {
        Grant {
            lifetime: (seconds > 0).then(|| Duration::from_secs(seconds)),
            is_renewable,
            ..Grant::default()
        }
    }

    #[test]
    fn a_token_is_renewed_at_half_of_its_life() {
        let minutes = |count: u64| Duration::from_secs(60 * count);
        assert_eq!(
            next_step(&grant(3600, true), None, 0.0),
            TokenStep::Renew(minutes(30))
        );
        assert_eq!(
            next_step(&grant(3600, true), None, 1.0),
            TokenStep::Renew(minutes(36))
        );
        assert_eq!(
            next_step(&grant(3600, false), None, 0.0),
            TokenStep::LogIn(minutes(30))
        );
        assert_eq!(next_step(&grant(0, true), None, 0.0), TokenStep::Keep);
        assert_eq!(
            next_step(&grant(1, true), None, 0.0),
            TokenStep::Renew(SHORTEST)
        );
    }

    #[test]
    fn a_token_near_its_maximal_life_is_replaced() {
        let step = |lease| next_step(&grant(lease, true), Some(HOUR), 0.0);
        assert_eq!(step(1200), TokenStep::Renew(Duration::from_secs(600)));
        assert_eq!(step(1199), TokenStep::LogIn(Duration::from_secs_f64(599.5)));
    }
}
