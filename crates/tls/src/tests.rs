mod authority;
mod handshakes;
mod reloads;
