job "web" {
  group "server" {
    netwrok {
    }
    task "http" {
      driver = "raw_exec"

      config {
        command = "/bin/true"
      }
    }
  }
}
