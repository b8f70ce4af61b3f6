job "web" {
  type = "service
}
