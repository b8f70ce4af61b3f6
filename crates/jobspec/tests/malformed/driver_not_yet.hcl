job "web" {
  group "server" {
    task "http" {
      driver = "docker"

      config {
        image = "redis:7"
      }
    }
  }
}
