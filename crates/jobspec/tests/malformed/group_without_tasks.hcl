job "web" {
  group "server" {
  }
}
