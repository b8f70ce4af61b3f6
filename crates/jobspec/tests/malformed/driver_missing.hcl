job "web" {
  group "server" {
    task "http" {
    }
  }
}
