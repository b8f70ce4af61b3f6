//! Clients, logins and JWTs of the tests.

use std::time::Duration;

use vault::{Auth, Client, Login, Token, VaultConfig};
use vault_test_kit::Vault;

pub(crate) fn config(address: String) -> VaultConfig {
    VaultConfig {
        enabled: true,
        address,
        timeout: Duration::from_secs(5),
        ..VaultConfig::default()
    }
}

pub(crate) fn client(vault: &Vault) -> Client {
    Client::open(&config(vault.url())).unwrap()
}

/// A JWT with the audience `vault.io`; the stand-in does not look at its signature.
pub(crate) fn login(role: &str) -> Login {
    Login {
        path: "jwt-nomad".to_owned(),
        role: role.to_owned(),
        // {"alg":"ES256"}.{"aud":"vault.io"}
        jwt: Token::new("eyJhbGciOiJFUzI1NiJ9.eyJhdWQiOiJ2YXVsdC5pbyJ9.PLANTED"),
    }
}

pub(crate) async fn log_in(client: &Client) -> Auth {
    client.log_in(&login("web")).await.unwrap()
}
