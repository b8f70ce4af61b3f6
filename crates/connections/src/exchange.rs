//! One request on a connection of its own.

use std::pin::pin;

/// Polls an exchange together with the connection that it needs, and returns the exchange's answer.
///
/// The end of the connection is no answer: the exchange tells its own failure.
pub async fn exchange<T>(connection: impl Future, exchange: impl Future<Output = T>) -> T {
    let (mut connection, mut exchange) = (pin!(connection), pin!(exchange));
    let mut is_open = true;
    loop {
        tokio::select! {
            biased;
            answer = &mut exchange => return answer,
            _ = &mut connection, if is_open => is_open = false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::exchange;

    #[tokio::test]
    async fn the_answer_may_come_after_the_end_of_the_connection() {
        let (sender, receiver) = tokio::sync::oneshot::channel();
        let connection = async move { sender.send(7).ok() };
        assert_eq!(exchange(connection, receiver).await, Ok(7));
    }

    #[tokio::test]
    async fn an_exchange_ends_without_its_connection() {
        assert_eq!(exchange(std::future::pending::<()>(), async { 7 }).await, 7);
    }
}
