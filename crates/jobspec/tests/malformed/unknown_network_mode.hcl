job "web" {
  group "server" {
    network {
      mode = "overlay"
    }
    task "http" {
      driver = "raw_exec"

      config {
        command = "/bin/true"
      }
    }
  }
}
